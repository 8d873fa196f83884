// Loader and comparator of the golden vectors in C++17; CC0 1.0. `worst` at most 1 passes; `named` says which mistake it is.
#pragma once
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
namespace posref {
using Numbers = std::vector<double>;
struct Tensor { std::vector<long> shape; Numbers data; };
struct Case {
  std::string id;
  std::map<std::string, std::string> word, param;  // word: op, gauge, compare, status, models, comment
  std::map<std::string, Numbers> fingerprint, growth, rms;  // of a flag; of a model
  std::map<std::string, Tensor> tensor;
};
struct File { std::map<std::string, Numbers> model; std::map<std::string, std::string> flag; std::vector<Case> cases; };

inline File load(const std::string &path) {
  File file;
  std::ifstream in(path);
  for (std::string line, word, name; std::getline(in, line);) {
    std::istringstream rest(line);
    if (!(rest >> word >> name)) continue;
    auto numbers = [&](Numbers &to) { for (std::string x; rest >> x;) to.push_back(std::strtod(x.c_str(), nullptr)); };
    if (word == "case") file.cases.push_back({name, {}, {}, {}, {}, {}, {}});
    else if (word == "schema" && name != "posref-vectors-3") throw std::runtime_error(path + ": unknown schema " + name);
    else if (word == "model") numbers(file.model[name]);
    else if (word == "flag") std::getline(rest >> std::ws, file.flag[name]);
    else if (file.cases.empty()) continue;
    else if (word == "param") std::getline(rest >> std::ws, file.cases.back().param[name]);
    else if (word == "fingerprint") numbers(file.cases.back().fingerprint[name]);
    else if (word == "growth") numbers(file.cases.back().growth[name]);
    else if (word == "rms") numbers(file.cases.back().rms[name]);
    else if (word == "tensor") {
      Tensor &t = file.cases.back().tensor[name];
      size_t rank;
      rest >> rank;
      t.shape.resize(rank);
      for (long &n : t.shape) rest >> n;
      numbers(t.data);
    } else file.cases.back().word[word] = line.substr(word.size() + 1);
  }
  return file;
}

inline Numbers differences(const Case &c, const Numbers &got) {  // got - expected; 0 where it is ignored
  const Numbers &expected = c.tensor.at("expected").data;
  auto ignore = c.tensor.find("ignore");
  Numbers d(got.size() == expected.size() ? got.size() : 0);
  for (size_t i = 0; i < d.size(); i++) d[i] = ignore != c.tensor.end() && ignore->second.data[i] ? 0 : got[i] - expected[i];
  return d;
}

inline double worst(const File &file, const Case &c, const Numbers &got, const std::string &model) {
  const Numbers &m = file.model.at(model), &expected = c.tensor.at("expected").data, d = differences(c, got);
  auto cond = [&](const char *name, size_t i, double absent) {
    auto found = c.tensor.find(name);
    return found == c.tensor.end() ? absent : found->second.data[i];
  };
  auto growth = c.growth.find(model), rms = c.rms.find(model);
  double phase = m[0] * (growth == c.growth.end() ? 1 : growth->second[0]), squares = 0, count = 0;
  Numbers allowed(d.size());
  for (size_t i = 0; i < d.size(); i++)
    allowed[i] = c.word.at("compare") == "equal" ? 0 : m[3] + 1.03125 * (phase * cond("cond.phase", i, 0) +
                 m[1] * cond("cond.amp", i, 0) + m[2] * cond("cond.out", i, std::fabs(expected[i])));
  bool gauge = c.word.at("gauge") == "row_constant";
  size_t row = gauge && !c.tensor.at("expected").shape.empty() ? c.tensor.at("expected").shape.back() : 1;
  double most = d.size() == expected.size() ? 0 : INFINITY;
  for (size_t i = 0; i < d.size(); i++)
    for (size_t j = gauge ? i / row * row : i; j < (gauge ? i / row * row + row : i + 1); j++) {
      if (cond("ignore", i, 0) || cond("ignore", j, 0)) continue;
      double error = std::fabs(gauge ? d[i] - d[j] : d[i]), bound = gauge ? allowed[i] + allowed[j] : allowed[i];
      double ratio = error == 0 ? 0 : error / bound;
      most = std::isfinite(d[i]) && std::isfinite(d[j]) ? std::fmax(most, ratio) : INFINITY;
      squares += ratio * ratio, count++;
    }
  return rms == c.rms.end() || count == 0 ? most : std::fmax(most, std::sqrt(squares / count) / rms->second[0]);
}

inline std::vector<std::string> named(const Case &c, const Numbers &got) {
  Numbers d = differences(c, got), sums(4);
  size_t row = c.word.at("gauge") == "row_constant" ? c.tensor.at("expected").shape.back() : 0, tags[] = {1, 2, 4, 6};
  auto ignore = c.tensor.find("ignore");
  for (size_t i = 0; i < d.size(); i++)
    for (int t = 0; t < 4; t++)
      sums[t] += (ignore != c.tensor.end() && ignore->second.data[i] ? 0 : row ? d[i] - d[i / row * row] : d[i]) *
                 (double((7 * i * i + 31 * i + 17 * tags[t]) % 251) - 125) / 64;
  std::vector<std::string> found;
  for (auto &[flag, known] : c.fingerprint) {
    double whole = 0, rest = known.empty() ? INFINITY : 0;
    for (size_t t = 0; t < known.size(); t++) whole += std::fabs(sums[t]), rest += std::fabs(sums[t] - known[t]);
    if (rest < whole / 64) found.push_back(flag);
  }
  return found;
}
}  // namespace posref
