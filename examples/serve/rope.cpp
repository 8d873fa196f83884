// RoPE in C++ answers the calls of `posref serve`: adapt `rotate`.
//
//     g++ -O2 -o rope examples/serve/rope.cpp
//     posref serve ./rope --as rope --dim 16 --layout half
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

struct Array {
    std::vector<size_t> shape;
    std::vector<double> data;
};

// x (batch, heads, n, d), positions (batch, n); pairs (t, t + d/2), angles position * 10000^(-2t/d).
static void rotate(Array &x, const Array &positions) {
    const size_t heads = x.shape[1], n = x.shape[2], half = x.shape[3] / 2;
    for (size_t row = 0; row < x.shape[0] * heads * n; ++row) {
        const double position = positions.data[row / (heads * n) * n + row % n];
        for (size_t t = 0; t < half; ++t) {
            const float angle = float(position * std::pow(10000.0, -double(t) / half));
            const float cos = std::cos(angle), sin = std::sin(angle);
            double *pair = &x.data[row * 2 * half + t];
            const float a = float(pair[0]), b = float(pair[half]);
            pair[0] = a * cos - b * sin;
            pair[half] = a * sin + b * cos;
        }
    }
}

static size_t after(const std::string &line, const std::string &word, size_t from = 0) {
    return line.find(word, from) + word.size();
}

// The numbers of the list that begins behind `"key": [`.
static std::vector<double> numbers(const std::string &line, const std::string &key, size_t from) {
    std::vector<double> found;
    const char *at = line.c_str() + after(line, "\"" + key + "\": [", from);
    while (*at != ']') {
        char *end;
        found.push_back(std::strtod(at, &end));
        at = end + (*end == ',');
    }
    return found;
}

static Array array(const std::string &line, const std::string &name) {
    const size_t from = after(line, "\"" + name + "\": {");
    const std::vector<double> shape = numbers(line, "shape", from);
    return {{shape.begin(), shape.end()}, numbers(line, "data", from)};
}

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        Array x = array(line, "x");
        rotate(x, array(line, "positions"));
        const int call = std::atoi(line.c_str() + after(line, "\"call\": "));
        std::printf("{\"call\": %d, \"result\": {\"dtype\": \"float32\", \"shape\": [", call);
        for (size_t i = 0; i < x.shape.size(); ++i) std::printf(i ? ", %zu" : "%zu", x.shape[i]);
        std::printf("], \"data\": [");
        for (size_t i = 0; i < x.data.size(); ++i) std::printf(i ? ", %.9g" : "%.9g", x.data[i]);
        std::printf("]}}\n");
        std::fflush(stdout);
    }
}
