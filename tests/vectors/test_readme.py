"""The loaders printed in the README, compiled and run: every bit of every number arrives."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from posref import vectors
from posref.vectors.formats import tensors

README = (vectors.DIRECTORY / "README.md").read_text()

MAIN = {
    "cpp": """
#include <cstdint>
#include <cstring>
#include <iostream>
int main(int, char **path) {
  uint64_t all = 0, count = 0, sizes = 0, params = 0, bits;
  for (auto &c : load(path[1])) {
    params += c.param.size() + c.id.size();
    for (auto &[name, t] : c.tensor) {
      for (long n : t.shape) sizes += n;
      count = 0;
      for (double x : t.data) {
        std::memcpy(&bits, &x, 8);
        all ^= (bits << (count % 7)) | (bits >> (64 - count % 7) % 64);
        count++;
      }
    }
  }
  std::cout << all << " " << sizes << " " << params << std::endl;
}
""",
    "rust": """
fn main() {
    let (mut all, mut sizes, mut params) = (0u64, 0usize, 0usize);
    for c in load(&std::env::args().nth(1).unwrap()) {
        params += c.param.len() + c.id.len();
        for (shape, data) in c.tensor.values() {
            sizes += shape.iter().sum::<usize>();
            for (n, x) in data.iter().enumerate() { all ^= x.to_bits().rotate_left(n as u32 % 7); }
        }
    }
    println!("{} {} {}", all, sizes, params);
}
""",
    "js": """
let all = 0n, sizes = 0, params = 0;
const view = new DataView(new ArrayBuffer(8));
for (const c of load(process.argv[2])) {
  params += Object.keys(c.params).length + c.id.length;
  const flat = [...Object.values(c.tensors), ...Object.values(c.stages), c.expected];
  for (const data of Object.values(c.cond || {})) flat.push({ shape: c.expected.shape, data });
  for (const { shape, data } of flat) {
    for (const n of shape) sizes += n;
    data.forEach((x, n) => {
      view.setFloat64(0, x);
      const bits = view.getBigUint64(0), k = BigInt(n % 7);
      all ^= BigInt.asUintN(64, (bits << k) | (bits >> (64n - k)));
    });
  }
}
console.log(`${all} ${sizes} ${params}`);
""",
}

BUILD = {
    "cpp": ("g++", lambda source, program: ["g++", "-std=c++17", "-O1", "-Wall", "-Werror", str(source), "-o", str(program)]),
    "rust": ("rustc", lambda source, program: ["rustc", "--edition=2021", "-Dwarnings", str(source), "-o", str(program)]),
    "js": ("node", None),
}


def loader(language):
    return re.search(rf"```{language}\n(.*?)```", README, re.DOTALL).group(1)


def rotated_left(bits, count):
    count = count.astype(np.uint64)
    return np.where(count == 0, bits, (bits << count) | (bits >> (np.uint64(64) - np.maximum(count, np.uint64(1)))))


def summary(name):
    """xor of all bit patterns, each turned by its place modulo 7; the sum of all sizes; a count of params and letters."""
    result, sizes, params = np.uint64(0), 0, 0
    for record in vectors.read(vectors.DIRECTORY / f"{name}.json")["cases"]:
        params += len(record["params"]) + len(record["id"])
        for _, tensor in tensors(record):
            bits = np.array(tensor["data"], dtype=np.float64).view(np.uint64)
            result ^= np.bitwise_xor.reduce(rotated_left(bits, np.arange(len(bits)) % 7), initial=np.uint64(0))
            sizes += sum(tensor["shape"])
    return f"{result} {sizes} {params}"


@pytest.mark.parametrize("language", BUILD)
def test_loader(language, tmp_path):
    tool, build = BUILD[language]
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    source = tmp_path / f"load.{ {'rust': 'rs'}.get(language, language) }"
    source.write_text(loader(language) + MAIN[language])
    command = ["node", str(source)]
    if build:
        command = [str(tmp_path / "load")]
        subprocess.run(build(source, command[0]), check=True, timeout=100)
    for name in vectors.names():
        path = vectors.DIRECTORY / f"{name}.{'json' if language == 'js' else 'txt'}"
        output = subprocess.run([*command, str(path)], check=True, capture_output=True, text=True, timeout=20).stdout
        assert output.strip() == summary(name)


def test_c_header_compiles(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (header,) = vectors.export(tmp_path, "c", "rope/half/d4-b1e4/one")
    program = (
        '#include <cstdio>\n#include "rope.h"\nint main() { std::printf("%.17g %lld", NAME_expected[2], NAME_positions[0]); }\n'
    )
    source = tmp_path / "main.cpp"
    source.write_text(program.replace("NAME", "rope_half_d4_b1e4_one"))
    subprocess.run(["g++", "-Wno-unused-variable", str(source), "-o", str(tmp_path / "main")], check=True, timeout=100)
    output = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True, timeout=20).stdout.split()
    case = vectors.case("rope/half/d4-b1e4/one")
    assert [float(output[0]), int(output[1])] == [case.expected[0, 2], case.tensors["positions"][0]]
    assert header.name == "rope.h"
