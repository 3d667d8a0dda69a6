#include <string>
#include <vector>

#include "tests/operators/nn/volume_reference.h"

namespace skiff::harness {
namespace {

using Ints = std::vector<int32_t>;

struct Conv3dSpec {
  std::string name;
  VolumeSize input;
  int64_t filters = 1;
  Triple kernel{1, 1, 1};
  Triple output{1, 1, 1};  // as expected
  // What the op is expected to do.
  Triple stride{1, 1, 1};
  Triple padding{0, 0, 0};  // before the input
  Triple dilation{1, 1, 1};
  int64_t groups = 1;
  bool channels_last = false;
  AttributeMap attrs = {};
  std::vector<std::string> gradients = {"Input", "Filter"};
  bool benchmark_only = false;
};

VolumeSize OutputOf(const Conv3dSpec& spec) {
  return {.batch = spec.input.batch, .channels = spec.filters, .size = spec.output};
}
Shape OutputShape(const Conv3dSpec& spec) { return OutputOf(spec).AsShape(spec.channels_last); }

// Calls visit(places of an output, an input, a weight) for each term of the sums.
template <typename Visit>
void ForEachTerm(const Conv3dSpec& spec, const Visit& visit) {
  const VolumeSize out = OutputOf(spec);
  const int64_t group_inputs = spec.input.channels / spec.groups;
  const int64_t group_outputs = spec.filters / spec.groups;
  for (int64_t n = 0; n < out.batch; ++n) {
    for (int64_t o = 0; o < out.channels; ++o) {
      ForEachPoint(out.size, [&](const Triple& p) {
        for (int64_t c = 0; c < group_inputs; ++c) {
          ForEachPoint(spec.kernel, [&](const Triple& t) {
            Triple q;
            for (size_t axis = 0; axis < 3; ++axis) {
              q[axis] =
                  p[axis] * spec.stride[axis] + t[axis] * spec.dilation[axis] - spec.padding[axis];
            }
            if (!spec.input.contains(q)) return;
            const VolumeSize taps{
                .batch = spec.filters, .channels = group_inputs, .size = spec.kernel};
            const int64_t channel = o / group_outputs * group_inputs + c;
            visit(out.Index(spec.channels_last, n, o, p),
                  spec.input.Index(spec.channels_last, n, channel, q), taps.Index(false, o, c, t));
          });
        }
      });
    }
  }
}

OpCase Conv3dCase(const Conv3dSpec& spec) {
  Shape filter = {spec.filters, spec.input.channels / spec.groups};
  for (const int64_t taps : spec.kernel) filter.Append(taps);
  OpCase op_case = SumsCase("conv3d", spec, spec.input.AsShape(spec.channels_last), filter);
  if (spec.channels_last) op_case.attrs["data_format"] = std::string("NDHWC");
  return op_case;
}

// More output points than a chunk of columns holds, and not a multiple of that.
Conv3dSpec SeveralConv3dChunks(bool channels_last) {
  return {.name = channels_last ? "channels_last_several_chunks" : "several_chunks",
          .input = {2, 2, {16, 36, 37}},
          .filters = 4,
          .kernel = {3, 3, 3},
          .output = {16, 36, 37},
          .padding = {1, 1, 1},
          .groups = 2,
          .channels_last = channels_last,
          .attrs = {{"paddings", Ints{1, 1, 1}}},
          .gradients = {}};
}

}  // namespace

void AddConv3dCases(CaseList& cases) {
  const std::vector<Conv3dSpec> specs = {
      {.name = "one_tap", .input = {2, 3, {2, 3, 4}}, .filters = 2, .output = {2, 3, 4}},
      {.name = "any_layout",
       .input = {1, 2, {2, 3, 2}},
       .filters = 2,
       .output = {2, 3, 2},
       .attrs = {{"data_format", std::string("AnyLayout")}}},
      {.name = "cubes",
       .input = {2, 3, {4, 5, 6}},
       .filters = 4,
       .kernel = {3, 3, 3},
       .output = {2, 3, 4}},
      {.name = "padded",
       .input = {2, 2, {3, 4, 5}},
       .filters = 3,
       .kernel = {3, 3, 3},
       .output = {3, 4, 5},
       .padding = {1, 1, 1},
       .attrs = {{"paddings", Ints{1, 1, 1}}}},
      {.name = "padded_unevenly",
       .input = {1, 2, {3, 4, 5}},
       .filters = 3,
       .kernel = {2, 3, 3},
       .output = {3, 4, 6},
       .padding = {1, 2, 0},
       .attrs = {{"paddings", Ints{1, 0, 2, 0, 0, 3}}}},
      {.name = "strides",
       .input = {1, 2, {5, 6, 7}},
       .filters = 3,
       .kernel = {2, 3, 3},
       .output = {4, 2, 2},
       .stride = {1, 2, 3},
       .attrs = {{"strides", Ints{1, 2, 3}}}},
      {.name = "dilations",
       .input = {1, 2, {5, 6, 9}},
       .filters = 2,
       .kernel = {2, 2, 3},
       .output = {4, 4, 3},
       .dilation = {1, 2, 3},
       .attrs = {{"dilations", Ints{1, 2, 3}}}},
      {.name = "groups",
       .input = {2, 4, {3, 3, 4}},
       .filters = 6,
       .kernel = {2, 2, 2},
       .output = {2, 2, 3},
       .groups = 2},
      {.name = "a_group_a_channel",
       .input = {1, 3, {3, 3, 4}},
       .filters = 3,
       .kernel = {2, 2, 2},
       .output = {2, 2, 3},
       .groups = 3},
      {.name = "channels_last",
       .input = {2, 3, {3, 4, 5}},
       .filters = 4,
       .kernel = {2, 3, 3},
       .output = {2, 2, 3},
       .channels_last = true},
      {.name = "channels_last_groups_strides",
       .input = {2, 4, {5, 5, 6}},
       .filters = 6,
       .kernel = {2, 3, 2},
       .output = {2, 2, 3},
       .stride = {2, 2, 2},
       .groups = 2,
       .channels_last = true,
       .attrs = {{"strides", Ints{2, 2, 2}}}},
      {.name = "same",
       .input = {1, 2, {4, 5, 5}},
       .filters = 2,
       .kernel = {3, 3, 2},
       .output = {2, 3, 5},
       .stride = {2, 2, 1},
       .padding = {0, 1, 0},
       .attrs = {{"padding_algorithm", std::string("SAME")},
                 {"strides", Ints{2, 2, 1}},
                 {"dilations", Ints{2, 2, 2}}}},
      {.name = "valid",
       .input = {1, 2, {4, 5, 5}},
       .filters = 2,
       .kernel = {3, 3, 2},
       .output = {2, 3, 4},
       .attrs = {{"padding_algorithm", std::string("VALID")}, {"paddings", Ints{1, 1, 1}}}},
      {.name = "no_volumes",
       .input = {0, 2, {3, 3, 3}},
       .filters = 2,
       .kernel = {2, 2, 2},
       .output = {2, 2, 2}},
      {.name = "video_2x64x8x28x28",
       .input = {2, 64, {8, 28, 28}},
       .filters = 64,
       .kernel = {3, 3, 3},
       .output = {8, 28, 28},
       .padding = {1, 1, 1},
       .attrs = {{"paddings", Ints{1, 1, 1}}},
       .benchmark_only = true},
  };
  for (const Conv3dSpec& spec : specs) cases.push_back(Conv3dCase(spec));
  for (const bool channels_last : {false, true}) {
    const Conv3dSpec spec = SeveralConv3dChunks(channels_last);
    cases.push_back(Conv3dCase(spec));
    cases.push_back(GradientOfSumsCase(Conv3dCase(spec), spec));
  }
}

}  // namespace skiff::harness
