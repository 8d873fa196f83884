// judge FILE GOT: a line `ID MODEL WORST FLAGS..` for every `tensor got` of the text file GOT; rope FILE LAYOUT: RoPE of this
// program, judged at every case of that layout.
#include <iostream>
#include "vectors.hpp"
using posref::Numbers;

Numbers rope(const posref::Case &c, const std::string &layout) {
  size_t dim = std::stoul(c.param.at("dim")), width = c.tensor.at("x").shape.back();
  double base = std::stod(c.param.at("base"));
  Numbers y = c.tensor.at("x").data;
  for (size_t row = 0; row * width < y.size(); row++)
    for (size_t t = 0; t < dim / 2; t++) {
      double angle = c.tensor.at("positions").data[row] * std::pow(base, -2.0 * t / dim);
      size_t first = row * width + (layout == "half" ? t : 2 * t), second = first + (layout == "half" ? dim / 2 : 1);
      double a = y[first], b = y[second];
      y[first] = a * std::cos(angle) - b * std::sin(angle);
      y[second] = a * std::sin(angle) + b * std::cos(angle);
    }
  return y;
}

void say(const posref::File &file, const posref::Case &c, const Numbers &got) {
  std::istringstream models(c.word.at("models"));
  for (std::string model; models >> model;) {
    std::cout << c.id << " " << model << " " << posref::worst(file, c, got, model);
    for (auto &flag : posref::named(c, got)) std::cout << " " << flag;
    std::cout << "\n";
  }
}

int main(int, char **arguments) {
  posref::File file = posref::load(arguments[2]);
  std::cout.precision(17);
  if (std::string(arguments[1]) == "rope") {
    for (auto &c : file.cases) if (c.id == "rope/half/d8-b1e4/tiny") say(file, c, rope(c, arguments[3]));
    return 0;
  }
  std::map<std::string, const posref::Case *> known;
  for (auto &c : file.cases) known[c.id] = &c;
  for (auto &c : posref::load(arguments[3]).cases) say(file, *known.at(c.id), c.tensor.at("got").data);
}
