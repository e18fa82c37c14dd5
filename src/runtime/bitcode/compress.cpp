// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     rigel_compress <from> <to>
//
// Compresses a file of bitcode by zstd, for librigel_runtime.so: one frame, whose header has the size. Level 19 takes a few seconds for
// all of them; more would save nothing.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <zstd.h>

namespace {

void compress(const char* from, const char* to) {
  constexpr int level = 19;
  std::ifstream in(from, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (!in || bytes.empty()) throw std::runtime_error(std::string("cannot read ") + from);
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size)) throw std::runtime_error(std::string(from) + ": " + ZSTD_getErrorName(size));
  std::ofstream out(to, std::ios::binary);
  out.write(packed.data(), static_cast<std::streamsize>(size));
  out.close();
  if (!out) throw std::runtime_error(std::string("cannot write ") + to);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: rigel_compress <from> <to>\n", stderr);
    return 2;
  }
  try {
    compress(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rigel_compress: %s\n", error.what());
    std::remove(argv[2]);  // a part of it would be taken for the file
    return 1;
  }
  return 0;
}
