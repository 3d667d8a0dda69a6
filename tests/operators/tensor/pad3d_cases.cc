#include "tests/operators/tensor/border_reference.h"

namespace skiff::harness {
namespace {

// The numbers before and after spatial axis k, of which the columns are the last: `paddings` begin
// with theirs.
int64_t PaddingBefore(const std::vector<int32_t>& paddings, int k) {
  return paddings[static_cast<size_t>(2 * (2 - k))];
}
int64_t PaddingAfter(const std::vector<int32_t>& paddings, int k) {
  return paddings[static_cast<size_t>(2 * (2 - k) + 1)];
}

}  // namespace

void AddPad3dCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, std::vector<int32_t> paddings,
                       const std::string& mode, bool is_last) {
    OpCase made{.name = mode + "_" + name + (is_last ? "_ndhwc" : "_ncdhw"),
                .type = "pad3d",
                .inputs = {{"X", {x}}},
                .attrs = {{"paddings", paddings},
                          {"mode", mode},
                          {"value", 2.0f},
                          {"data_format", std::string(is_last ? "NDHWC" : "NCDHW")}},
                .outputs = {{"Out", 1}},
                .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [paddings, mode, is_last](const Arrays& inputs) {
      const Array& from = inputs.at("X")[0];
      const int first = is_last ? 1 : 2;
      Shape shape = from.shape;
      for (const int k : {0, 1, 2}) {
        shape[first + k] += PaddingBefore(paddings, k) + PaddingAfter(paddings, k);
      }
      const Array out = Generated(shape, [&](std::vector<int64_t> at) {
        for (const int k : {0, 1, 2}) {
          int64_t& place = at[static_cast<size_t>(first + k)];
          place = BorderSource(mode, place - PaddingBefore(paddings, k), from.shape[first + k]);
          if (place < 0) return 2.0;
        }
        return from.values[IndexOf(from.shape, at)];
      });
      return Arrays{{"Out", {TypedLike(out, from)}}};
    };
    cases.push_back(std::move(made));
  };
  for (const std::string mode : {"constant", "reflect", "replicate", "circular"}) {
    for (const bool is_last : {false, true}) {
      const auto images = [&](int64_t n, int64_t c, int64_t d, int64_t h, int64_t w,
                              uint64_t seed) {
        return Uniform(is_last ? Shape{n, d, h, w, c} : Shape{n, c, d, h, w}, seed);
      };
      add("every_side", images(2, 3, 3, 4, 5, 1), {1, 2, 3, 1, 2, 1}, mode, is_last);
      add("as_wide_as_it_gets", images(1, 2, 2, 3, 4, 2), {3, 3, 2, 2, 1, 1}, mode, is_last);
      add("no_border", images(1, 2, 2, 3, 2, 3), {0, 0, 0, 0, 0, 0}, mode, is_last);
      add("left_only", images(1, 2, 2, 3, 3, 4), {2, 0, 0, 0, 0, 0}, mode, is_last);
      add("back_only", images(1, 2, 3, 3, 2, 5), {0, 0, 0, 0, 0, 2}, mode, is_last);
      add("one_plane", images(2, 3, 1, 4, 5, 6), {1, 2, 3, 1, 0, 0}, mode, is_last);
      add("no_images", images(0, 2, 2, 3, 2, 7), {1, 1, 1, 1, 1, 1}, mode, is_last);
    }
    add("int64", Integers({1, 2, 2, 3, 3}, 8, -9, 9), {1, 2, 0, 1, 1, 0}, mode, false);
    add("many", Uniform({3, 5, 7, 21, 19}, 9), {3, 4, 5, 2, 1, 2}, mode, false);
    cases.back().gradients.clear();
  }
  for (const std::string mode : {"replicate", "circular"}) {
    add("wider_than_the_image", Uniform({1, 2, 1, 2, 3}, 10), {7, 3, 5, 2, 1, 4}, mode, false);
  }
  add("empty_images", Uniform({1, 2, 2, 0, 2}, 11), {0, 2, 1, 1, 0, 0}, "constant", false);
  add("4M_elements", Uniform({2, 16, 32, 64, 64}, 12), {1, 1, 1, 1, 1, 1}, "replicate", false);
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
