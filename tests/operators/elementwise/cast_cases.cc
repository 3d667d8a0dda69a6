#include <cmath>
#include <limits>

#include "tests/harness/selected_rows_cases.h"
#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

namespace {

// Of selected rows, the values are cast and the row numbers stay.
void AddSelectedRowsCases(CaseList& cases) {
  const std::vector<DType> floats = {DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                     DType::kFloat64};
  for (const auto& [name, rows] : SelectedRowsOfAllKinds()) {
    for (const DType from : floats) {
      for (const DType to : floats) {
        Array x = rows;
        x.fixed_dtype = true;
        x.dtype = from;
        // All of these types hold small whole numbers.
        for (double& value : x.values) value = std::round(16 * value);
        OpCase one = UnaryCase(StrCat(name, "_", from, "_to_", to), "cast", x, {});
        one.attrs = {{"in_dtype", static_cast<int32_t>(from)},
                     {"out_dtype", static_cast<int32_t>(to)}};
        one.reference = [to](const Arrays& inputs) {
          Array out = inputs.at("X")[0];
          out.dtype = to;
          return Arrays{{"Out", {out}}};
        };
        cases.push_back(one);
      }
    }
  }
}

}  // namespace

void AddCastCases(CaseList& cases) {
  AddSelectedRowsCases(cases);
  const std::vector<DType> dtypes = {
      DType::kBool,  DType::kInt8,    DType::kUint8,    DType::kInt16,   DType::kInt32,
      DType::kInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
  const auto add = [&](const std::string& name, DType from, DType to, Array x,
                       std::vector<double> expected) {
    x.fixed_dtype = true;
    x.dtype = from;
    OpCase one = UnaryCase(name, "cast", x, {});
    one.attrs = {{"in_dtype", static_cast<int32_t>(from)}, {"out_dtype", static_cast<int32_t>(to)}};
    one.reference = [shape = x.shape, expected, to](const Arrays&) {
      return Arrays{{"Out", {Values(shape, expected, to)}}};
    };
    cases.push_back(one);
  };
  for (const DType from : dtypes) {
    for (const DType to : dtypes) {
      const int64_t high = from == DType::kBool ? 2 : 100;
      const Array x = Integers({3, 11}, 1, 0, high, from);
      std::vector<double> expected = x.values;
      for (double& value : expected) value = to == DType::kBool ? value != 0 : value;
      add(StrCat(from, "_to_", to), from, to, x, expected);
    }
  }
  add("towards_zero", DType::kFloat32, DType::kInt32, Values({4}, {-1.75, -0.5, 0.5, 1.75}),
      {-1, 0, 0, 1});
  add("out_of_range", DType::kFloat32, DType::kInt32, Values({2}, {-1e20, 1e20}),
      {-2147483648.0, 2147483647.0});
  add("out_of_range_uint8", DType::kFloat64, DType::kUint8, Values({3}, {-3, 255.5, 256}),
      {0, 255, 255});
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // Halfway between two numbers, the even one; the largest number and numbers above it; subnormal
  // numbers, and half of the smallest one.
  add("nearest_float16", DType::kFloat32, DType::kFloat16,
      Values({14}, {1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1.2p-11, -2049, 65504, 65519.996, 65520, -1e9,
                    0x1p-24, 0x1.8p-24, 0x1p-25, 0x1.1p-25, -infinity, nan}),
      {1, 1 + 0x1p-9, 1 + 0x1p-10, -2048, 65504, 65504, infinity, -infinity, 0x1p-24, 0x1p-23, 0,
       0x1p-24, -infinity, nan});
  add("nearest_bfloat16", DType::kFloat32, DType::kBFloat16,
      Values({9}, {1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1.2p-8, -257, 0x1.ffp127, 0x1.fep127, 0x1p-133,
                   -infinity, nan}),
      {1, 1 + 0x1p-6, 1 + 0x1p-7, -256, infinity, 0x1.fep127, 0x1p-133, -infinity, nan});
  // The same numbers in every lane of a vector.
  std::vector<double> numbers;
  std::vector<double> rounded;
  for (int i = 0; i < 16; ++i) {
    numbers.insert(numbers.end(), {1 + 0x3p-8, -257, 0x1.ffp127, nan, -infinity});
    rounded.insert(rounded.end(), {1 + 0x1p-6, -256, infinity, nan, -infinity});
  }
  add("nearest_bfloat16_in_vectors", DType::kFloat32, DType::kBFloat16, Values({80}, numbers),
      rounded);
  add("float16_exactly", DType::kFloat16, DType::kFloat32,
      Values({7}, {1 + 0x1p-10, -65504, 0x1p-14, 0x1p-24, -0x3ffp-24, infinity, nan}),
      {1 + 0x1p-10, -65504, 0x1p-14, 0x1p-24, -0x3ffp-24, infinity, nan});
  add("bfloat16_exactly", DType::kBFloat16, DType::kFloat32,
      Values({5}, {1 + 0x1p-7, -0x1.fep127, 0x1p-133, infinity, nan}),
      {1 + 0x1p-7, -0x1.fep127, 0x1p-133, infinity, nan});
  add("half_out_of_range", DType::kFloat16, DType::kInt8, Values({4}, {-65504, 200, 1.5, nan}),
      {-128, 127, 1, 0});
  add("no_elements", DType::kFloat32, DType::kInt64, Values({0, 2}, {}), {});
  OpCase same = UnaryCase("gradient", "cast", Uniform({5, 7}, 3), [](double x) { return x; });
  same.attrs = {{"in_dtype", 6}, {"out_dtype", 6}};
  same.dtypes = {DType::kFloat64};
  same.gradients = {"X"};
  cases.push_back(same);
}

}  // namespace skiff::harness
