#include "tests/simt/matrix_products.h"

#include <cstdlib>
#include <cstring>

#include "tests/simt/include/cuda_fp16.h"

namespace simt {
namespace {

constexpr int kOutputs = 16, kColumns = 8;

float value_of_f16(uint16_t bits) { return __half2float({bits}); }

void check_whole_warp(uint32_t present) {
  if (present != ~0u) std::abort();
}

// Puts sums where lanes expect them.
template <class Sum>
void deal(const Sum (&sums)[kOutputs][kColumns], Payload* out) {
  static_assert(4 * sizeof(Sum) <= sizeof(Payload));
  for (int lane = 0; lane < kLanes; ++lane) {
    const int output = lane / 4, column = lane % 4 * 2;
    const Sum of_lane[4] = {sums[output][column], sums[output][column + 1],
                            sums[output + 8][column], sums[output + 8][column + 1]};
    std::memcpy(out[lane].words, of_lane, sizeof(of_lane));
  }
}

template <float (*kValue)(uint16_t)>
void products_of_pairs(const Payload* in, Payload* out, uint32_t present) {
  check_whole_warp(present);
  constexpr int kInputs = 16;
  double w[kOutputs][kInputs], x[kInputs][kColumns];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, j = lane % 4;
    const uint32_t* words = in[lane].words;
    for (int half = 0; half < 2; ++half) {
      const auto value = [&](uint32_t word) {
        return double(kValue(uint16_t(word >> (16 * half))));
      };
      w[g][2 * j + half] = value(words[0]);
      w[g + 8][2 * j + half] = value(words[1]);
      w[g][2 * j + 8 + half] = value(words[2]);
      w[g + 8][2 * j + 8 + half] = value(words[3]);
      x[2 * j + half][g] = value(words[4]);
      x[2 * j + 8 + half][g] = value(words[5]);
    }
  }
  double sums[kOutputs][kColumns] = {};
  for (int o = 0; o < kOutputs; ++o)
    for (int i = 0; i < kInputs; ++i)
      for (int c = 0; c < kColumns; ++c) sums[o][c] += w[o][i] * x[i][c];
  deal(sums, out);
}

}  // namespace

void products_of_f16(const Payload* in, Payload* out, uint32_t present) {
  products_of_pairs<value_of_f16>(in, out, present);
}

void products_of_bf16(const Payload* in, Payload* out, uint32_t present) {
  products_of_pairs<slip::bf16_to_float>(in, out, present);
}

void products_of_bytes(const Payload* in, Payload* out, uint32_t present) {
  check_whole_warp(present);
  constexpr int kInputs = 32;
  int w[kOutputs][kInputs], x[kInputs][kColumns];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, j = lane % 4;
    const uint32_t* words = in[lane].words;
    for (int i = 0; i < 4; ++i) {
      const auto byte = [&](uint32_t word) { return uint8_t(word >> (8 * i)); };
      w[g][4 * j + i] = byte(words[0]);
      w[g + 8][4 * j + i] = byte(words[1]);
      w[g][4 * j + 16 + i] = byte(words[2]);
      w[g + 8][4 * j + 16 + i] = byte(words[3]);
      x[4 * j + i][g] = int8_t(byte(words[4]));
      x[4 * j + 16 + i][g] = int8_t(byte(words[5]));
    }
  }
  int sums[kOutputs][kColumns] = {};
  for (int o = 0; o < kOutputs; ++o)
    for (int i = 0; i < kInputs; ++i)
      for (int c = 0; c < kColumns; ++c) sums[o][c] += w[o][i] * x[i][c];
  deal(sums, out);
}

namespace {

template <class Product, class Sum>
void add_products(Sum (&sums)[4], const Operands& operands, WarpOperation products) {
  Payload mine;
  std::memcpy(mine.words, operands.words, sizeof(operands.words));
  const Payload result = with_warp(mine, products);
  Product added[4];
  std::memcpy(added, result.words, sizeof(added));
  for (int i = 0; i < 4; ++i) sums[i] = Sum(Product(sums[i]) + added[i]);
}

}  // namespace

void multiply(float (&sums)[4], const Operands& operands, WarpOperation products) {
  add_products<double>(sums, operands, products);
}

void multiply(int (&sums)[4], const Operands& operands, WarpOperation products) {
  add_products<int>(sums, operands, products);
}

}  // namespace simt
