#include "framework/tensor/philox.h"
#include "tests/operators/random/sample_statistics.h"

namespace skiff::harness {
namespace {

// The elements of the documented words, from the scalar generator.
std::vector<double> ExpectedElements(DType dtype, uint64_t seed, int64_t count) {
  const Philox philox({.seed = seed});
  std::vector<double> expected;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t word = static_cast<uint64_t>(dtype == DType::kFloat32 ? i : 2 * i);
    const Philox::Block block = philox.At(word / 4);
    expected.push_back(dtype == DType::kFloat32 ? double{UnitFloat(block[word % 4])}
                                                : UnitDouble(block[word % 4], block[word % 4 + 1]));
  }
  return expected;
}

OpCase WordsCase(const std::string& name, DType dtype, int32_t count) {
  const std::vector<double> values = ExpectedElements(dtype, 77, count);
  const Array out = Values({count}, values, dtype);
  return {.name = name,
          .type = "uniform_random",
          .attrs = {{"shape", std::vector<int64_t>{count}},
                    {"dtype", static_cast<int32_t>(dtype)},
                    {"min", 0.0f},
                    {"max", 1.0f},
                    {"seed", 77}},
          .reference =
              [out](const Arrays&) {
                return Arrays{{"Out", {out}}};
              },
          .outputs = {{"Out", 1}},
          .dtypes = {DType::kFloat32}};
}

}  // namespace

void AddUniformRandomCases(CaseList& cases) {
  AddRandomTensorCases("uniform_random", {{"min", -3.0f}, {"max", 1.0f}},
                       {.mean = -1, .deviation = 4 / std::sqrt(12.0), .low = -3, .high = 1}, cases);
  cases.push_back(WordsCase("documented_words_float32", DType::kFloat32, 1031));
  cases.push_back(WordsCase("documented_words_float64", DType::kFloat64, 1031));
  OpCase diagonal{.name = "diagonal",
                  .type = "uniform_random",
                  .attrs = {{"shape", std::vector<int64_t>{3, 3}},
                            {"diag_num", 3},
                            {"diag_step", 3},
                            {"diag_val", 7.0f}},
                  .outputs = {{"Out", 1}},
                  .dtypes = {DType::kFloat32}};
  diagonal.check = [](const Arrays&, const Arrays& outputs) {
    const std::vector<double>& values = outputs.at("Out")[0].values;
    for (size_t i = 0; i < values.size(); ++i) {
      SKIFF_ENFORCE((values[i] == 7.0) == (i % 4 == 0), kInvalidArgument, "element ", i, " is ",
                    values[i]);
    }
  };
  cases.push_back(std::move(diagonal));
}

}  // namespace skiff::harness
