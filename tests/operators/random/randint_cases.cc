#include <cmath>

#include "framework/tensor/philox.h"
#include "tests/operators/random/sample_statistics.h"

namespace skiff::harness {
namespace {

OpCase RandintCase(const std::string& name, int32_t low, int32_t high,
                   const std::vector<int64_t>& shape, DType dtype) {
  return {.name = name,
          .type = "randint",
          .attrs = {{"low", low},
                    {"high", high},
                    {"shape", shape},
                    {"dtype", static_cast<int32_t>(dtype)}},
          .outputs = {{"Out", 1}},
          .dtypes = {DType::kFloat32}};
}

}  // namespace

void AddRandintCases(CaseList& cases) {
  const auto add = [&](const std::string& name, int32_t low, int32_t high, DType dtype) {
    OpCase made = RandintCase(name, low, high, {97, 113}, dtype);
    const double width = static_cast<double>(high) - low;
    const Distribution expected{.mean = low + (width - 1) / 2,
                                .deviation = std::sqrt((width * width - 1) / 12),
                                .low = static_cast<double>(low),
                                .high = static_cast<double>(high) - 1};
    made.check = [expected](const Arrays&, const Arrays& outputs) {
      CheckSample(outputs.at("Out")[0].values, expected);
      const auto& values = outputs.at("Out")[0].values;
      // Among so many numbers, at least one is the smallest possible, unless the range is very
      // large.
      if (expected.high - expected.low < 100) {
        SKIFF_ENFORCE(*std::min_element(values.begin(), values.end()) == expected.low &&
                          *std::max_element(values.begin(), values.end()) == expected.high,
                      kOutOfRange, "the ends of the interval are never drawn");
      }
    };
    cases.push_back(std::move(made));
  };
  add("int64", 2, 5, DType::kInt64);
  add("int32", -50, 50, DType::kInt32);
  add("every_int32", INT32_MIN, INT32_MAX, DType::kInt64);

  OpCase one = RandintCase("one_number", 4, 5, {7}, DType::kInt64);
  one.reference = [](const Arrays&) {
    return Arrays{{"Out", {Values({7}, std::vector<double>(7, 4.0), DType::kInt64)}}};
  };
  cases.push_back(std::move(one));
  OpCase empty = RandintCase("empty", 0, 5, {2, 0}, DType::kInt32);
  empty.reference = [](const Arrays&) {
    return Arrays{{"Out", {Values({2, 0}, {}, DType::kInt32)}}};
  };
  cases.push_back(std::move(empty));

  OpCase words = RandintCase("documented_words", -3, 1000, {1031}, DType::kInt64);
  words.attrs["seed"] = 77;
  words.reference = [](const Arrays&) {
    const Philox philox({.seed = 77});
    std::vector<double> expected;
    for (uint64_t i = 0; i < 1031; ++i) {
      const Philox::Block block = philox.At(i / 2);
      const uint64_t bits = uint64_t{block[i % 2 * 2]} << 32 | block[i % 2 * 2 + 1];
      // bits * 1003 / 2^64, in two halves that don't overflow.
      const uint64_t high = (bits >> 32) * 1003 + ((bits & 0xFFFFFFFFU) * 1003 >> 32);
      expected.push_back(static_cast<double>(high >> 32) - 3);
    }
    return Arrays{{"Out", {Values({1031}, expected, DType::kInt64)}}};
  };
  cases.push_back(std::move(words));
}

}  // namespace skiff::harness
