// ctc_align: the labels of a path of CTC: repeated ids are merged, then blanks are dropped.
//
//   Output[i] = the ids of sequence i of Input that aren't `blank` and, with merge_repeated, differ
//               from the id before
//
// Input is ragged, and so is Output. Or Input is [sequences, steps] with InputLength; then Output
// has padding_value behind the labels, and OutputLength says how many there are. The rows of a
// ragged Output depend on data. Source: Fluid's ctc_align. Of sequences that all have no labels,
// Fluid makes a row of -1 that no sequence has; here Output has no rows.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

void InferRagged(OpContext& context) {
  const TensorMeta& input = context.Input("Input");
  SKIFF_ENFORCE(input.shape.rank() == 2 && (input.shape[1] == 1 || input.shape[1] < 0),
                kInvalidArgument, "ctc_align: Input is of shape ", input.shape,
                ", expected [rows, 1] if there is no InputLength");
  OneLevelSequenceCount(context, "Input");
  context.SetOutput("Output", {-1, 1}, input.dtype);
  DeclareLoDLevel(context, "Output", 1);
}

void InferPadded(OpContext& context) {
  const TensorMeta& input = context.Input("Input");
  SKIFF_ENFORCE(input.shape.rank() == 2, kInvalidArgument, "ctc_align: Input is of shape ",
                input.shape, ", expected [sequences, steps] with InputLength");
  const Shape& length = context.Input("InputLength").shape;
  Shape expected = {input.shape[0]};
  if (length.rank() == 2) expected.Append(1);
  CheckInputLike(context, "InputLength", expected, input.dtype);
  context.SetOutput("Output", input.shape, input.dtype);
  context.SetOutput("OutputLength", {input.shape[0], 1}, input.dtype);
}

void Infer(OpContext& context) {
  context.HasInput("InputLength") ? InferPadded(context) : InferRagged(context);
}

template <typename T>
struct PathLabels {
  // Calls visit(id) for the labels of the path [begin, end).
  template <class Visit>
  void ForEach(const T* begin, const T* end, const Visit& visit) const {
    for (const T* id = begin; id < end; ++id) {
      const bool repeats = merges && id > begin && *id == id[-1];
      if (int64_t{*id} != blank && !repeats) visit(*id);
    }
  }

  int64_t blank;
  bool merges;
};

template <typename T>
Tensor AlignRagged(const PathLabels<T>& labels, const Tensor& input) {
  const SequenceRows paths(input);
  const T* from = input.data<T>();
  Tensor output(input.shape(), kDTypeOf<T>);
  T* to = output.data<T>();
  LoD lod = {{0}};
  const T* const first = to;
  for (int64_t i = 0; i < paths.size(); ++i) {
    labels.ForEach(from + paths[i].begin, from + paths[i].end, [&](T id) { *to++ = id; });
    lod[0].push_back(static_cast<uint64_t>(to - first));
  }
  output.SetRows(to - first);
  output.set_lod(std::move(lod));
  return output;
}

// One run of a padded batch.
template <typename T>
struct PaddedPaths {
  void Align(const PathLabels<T>& labels, int64_t i) const {
    T* const to = output + i * steps;
    T* next = to;
    labels.ForEach(input + i * steps, input + i * steps + lengths[i], [&](T id) { *next++ = id; });
    if (output_lengths != nullptr) output_lengths[i] = static_cast<T>(next - to);
    std::fill(next, to + steps, padding);
  }

  const T* input;
  const T* lengths;
  int64_t steps;
  T padding;
  T* output;
  T* output_lengths;  // nullptr: not wanted
};

template <typename T>
void AlignPadded(const PathLabels<T>& labels, int64_t count, const PaddedPaths<T>& paths) {
  for (int64_t i = 0; i < count; ++i) {
    SKIFF_ENFORCE(paths.lengths[i] >= 0 && paths.lengths[i] <= paths.steps, kOutOfRange,
                  "ctc_align: InputLength[", i, "] = ", paths.lengths[i],
                  ", expected 0 to dim 1 of Input, ", paths.steps);
  }
  ParallelFor(count, SequenceGrain(count, count * paths.steps), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) paths.Align(labels, i);
  });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const PathLabels<T> labels{context.IntAttr("blank"), context.Attr<bool>("merge_repeated")};
  return MakeRowsKernel(
      [labels, padding = static_cast<T>(context.IntAttr("padding_value")),
       input = In<>(context, "Input"), length = In<T>(context, "InputLength"),
       output = Out<>(context, "Output"),
       output_length = Out<T>(context, "OutputLength")](const KernelContext& run) {
        const Tensor& paths = input.tensor(run);
        if (!length.is_there()) {
          output.tensor(run) = AlignRagged(labels, paths);
          return;
        }
        const Shape& shape = paths.shape();
        AlignPadded(labels, shape[0],
                    PaddedPaths<T>{.input = paths.data<T>(),
                                   .lengths = length(run),
                                   .steps = shape[1],
                                   .padding = padding,
                                   .output = output.as<T>(run),
                                   .output_lengths = output_length(run)});
      });
}

}  // namespace

void RegisterCtcAlign(OpRegistry& registry) {
  OpDef def;
  def.type = "ctc_align";
  def.doc = "The sequences of Input with repeated ids merged, then without blanks.";
  def.inputs = {{.name = "Input",
                 .doc = "Ids, int32 or int64. Ragged, [rows, 1]; with InputLength [sequences, "
                        "steps]."},
                {.name = "InputLength",
                 .doc = "[sequences, 1] or [sequences], of Input's dtype: the steps of each.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {
      {.name = "Output", .doc = "Ragged, [rows left, 1]; with InputLength of Input's shape."},
      {.name = "OutputLength",
       .doc = "[sequences, 1]: the labels of each, if there is InputLength.",
       .dispensable = true}};
  def.attrs = {{.name = "blank",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "The id that is no label."},
               {.name = "merge_repeated",
                .type = AttrType::kBool,
                .default_value = true,
                .doc = "Whether equal ids in a row are one label."},
               {.name = "padding_value",
                .type = AttrType::kInt,
                .default_value = int32_t{0},
                .doc = "What stands behind the labels if there is InputLength."}};
  def.infer = Infer;
  def.precision = Precision::kNone;
  def.no_gradient_reason = "ids have no gradient";
  def.data_dependent_shape = true;
  registry.Add(std::move(def));
  registry.AddCpuKernels<int32_t, int64_t>(
      "ctc_align", []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
