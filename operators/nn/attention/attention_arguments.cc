#include "operators/nn/attention/attention_arguments.h"

#include <string>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

// Returns a sequence's shape [N, L, columns].
const Shape& SequenceShape(const OpContext& context, const char* slot) {
  const TensorMeta& meta = context.Input(slot);
  SKIFF_ENFORCE(meta.shape.rank() == 3, kInvalidArgument, context.op().type, ": ", slot,
                " has the shape ", meta.shape, ", expected [N, L, columns]");
  SKIFF_ENFORCE(meta.dtype == context.Input("Query").dtype, kInvalidArgument, context.op().type,
                ": ", slot, " is ", meta.dtype, ", expected Query's ",
                context.Input("Query").dtype);
  return meta.shape;
}

int64_t HeadWidth(const OpContext& context, int64_t columns, int64_t heads) {
  if (columns < 0) return -1;
  SKIFF_ENFORCE(columns > 0 && columns % heads == 0, kInvalidArgument, context.op().type, ": ",
                columns, " columns of Query can't be ", heads,
                IsPackedAttention(context) ? " times num_heads" : "",
                " heads, expected a positive multiple");
  return columns / heads;
}

// Bias has the last of these dims, or 1 where it is the same along that dim.
void CheckBias(const OpContext& context, const AttentionSizes& sizes) {
  if (!context.HasInput("Bias")) return;
  const TensorMeta& bias = context.Input("Bias");
  const Shape scores = {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
  bool fits = bias.shape.rank() >= 1 && bias.shape.rank() <= 4;
  for (int axis = 1; fits && axis <= bias.shape.rank(); ++axis) {
    const int64_t dim = bias.shape.dim(-axis);
    const int64_t size = scores.dim(-axis);
    fits = dim < 0 || size < 0 || dim == size || (dim == 1 && axis > 1);
  }
  SKIFF_ENFORCE(fits, kInvalidArgument, context.op().type, ": Bias has the shape ", bias.shape,
                ", expected the last dims of the scores ", scores,
                ", or 1 for any of them but the last");
  SKIFF_ENFORCE(bias.dtype == context.Input("Query").dtype, kInvalidArgument, context.op().type,
                ": Bias is ", bias.dtype, ", expected Query's ", context.Input("Query").dtype);
}

// What says which keys are seen.
void CheckPlaces(const OpContext& context, const AttentionSizes& sizes) {
  const bool has_positions = context.HasInput("Positions");
  SKIFF_ENFORCE(!has_positions || (sizes.causal && !context.HasInput("KeyLengths")),
                kInvalidArgument, context.op().type, ": found Positions ",
                sizes.causal ? "and KeyLengths" : "without causal",
                ", expected causal attention without KeyLengths");
  if (context.HasInput("KeyLengths"))
    CheckInputLike(context, "KeyLengths", {sizes.batch}, DType::kInt64);
  if (has_positions)
    CheckInputLike(context, "Positions", {sizes.batch, sizes.queries}, DType::kInt64);
}

HeadPlaces PlacesOf(const OpContext& context, const AttentionSizes& sizes, AttentionPart part,
                    int argument) {
  const bool is_packed = IsPackedAttention(context);
  const int64_t columns = ColumnsOf(sizes);
  return {.argument = argument,
          .first = is_packed ? static_cast<int64_t>(part) * columns : 0,
          .stride = is_packed ? 3 * columns : columns,
          .length = part == AttentionPart::kQuery ? sizes.queries : sizes.keys,
          .width = sizes.width};
}

// Returns the slot that has the part.
std::string SlotOf(const OpContext& context, AttentionPart part) {
  if (IsPackedAttention(context) || part == AttentionPart::kQuery) return "Query";
  return part == AttentionPart::kKey ? "Key" : "Value";
}

}  // namespace

bool IsPackedAttention(const OpContext& context) {
  SKIFF_ENFORCE(context.HasInput("Key") == context.HasInput("Value"), kInvalidArgument,
                context.op().type, ": found only one of Key and Value, expected both, or neither ",
                "with a packed Query");
  return !context.HasInput("Key");
}

AttentionSizes ParseAttention(const OpContext& context) {
  AttentionSizes sizes;
  sizes.heads = context.IntAttr("num_heads");
  sizes.causal = context.Attr<bool>("causal");
  const Shape& query = SequenceShape(context, "Query");
  sizes.batch = query[0];
  sizes.queries = query[1];
  sizes.keys = query[1];
  if (IsPackedAttention(context)) {
    sizes.width = HeadWidth(context, query[2], MultiplyCounts(3, sizes.heads));
  } else {
    int64_t columns = query[2];
    sizes.keys = -1;
    for (const char* slot : {"Key", "Value"}) {
      const Shape& shape = SequenceShape(context, slot);
      const std::string what =
          StrCat(context.op().type, ": Query ", query, " and ", slot, " ", shape, " differ in");
      sizes.batch = MergeDims(sizes.batch, shape[0], what + " dim 0");
      columns = MergeDims(columns, shape[2], what + " columns");
      sizes.keys = MergeDims(sizes.keys, shape[1],
                             StrCat(context.op().type, ": the lengths of Key and Value"));
    }
    sizes.width = HeadWidth(context, columns, sizes.heads);
  }
  SKIFF_ENFORCE(!sizes.causal || sizes.keys < 0 || sizes.keys >= sizes.queries, kInvalidArgument,
                context.op().type, ": causal attention of ", sizes.queries, " queries to ",
                sizes.keys, " keys, expected at least as many keys");
  sizes.first_place = sizes.keys - sizes.queries;
  CheckBias(context, sizes);
  CheckPlaces(context, sizes);
  return sizes;
}

int64_t ColumnsOf(const AttentionSizes& sizes) {
  return sizes.width < 0 ? -1 : sizes.width * sizes.heads;
}
Shape AttentionOutShape(const AttentionSizes& sizes) {
  return {sizes.batch, sizes.queries, ColumnsOf(sizes)};
}
Shape AttentionStatisticsShape(const AttentionSizes& sizes) {
  return {sizes.batch, sizes.heads, sizes.queries};
}

void CheckKeyLengths(const KernelContext& run, const In<int64_t>& key_lengths,
                     const AttentionSizes& sizes, std::string_view op) {
  if (!key_lengths.is_there()) return;
  const int64_t* lengths = key_lengths(run);
  for (int64_t n = 0; n < sizes.batch; ++n) {
    SKIFF_ENFORCE(lengths[n] >= 0 && lengths[n] <= sizes.keys, kOutOfRange, op, ": KeyLengths[", n,
                  "] is ", lengths[n], ", expected 0 to the ", sizes.keys, " keys");
  }
}

HeadPlaces InputPlaces(const OpContext& context, const AttentionSizes& sizes, AttentionPart part) {
  return PlacesOf(context, sizes, part, context.InputIndex(SlotOf(context, part)));
}

HeadPlaces GradientPlaces(const OpContext& context, const AttentionSizes& sizes,
                          AttentionPart part) {
  return PlacesOf(context, sizes, part, context.OutputIndex(SlotOf(context, part) + "@GRAD"));
}

HeadPlaces OutPlaces(const AttentionSizes& sizes) {
  return {.stride = ColumnsOf(sizes), .length = sizes.queries, .width = sizes.width};
}

BiasPlaces::BiasPlaces(const OpContext& context) : bias(context, "Bias") {
  if (!bias.is_there()) return;
  const Shape& shape = context.Input("Bias").shape;
  int64_t elements = shape.dim(-1);
  int axis = 2;
  for (int64_t* stride : {&row, &head, &sequence}) {
    const int64_t dim = axis <= shape.rank() ? shape.dim(-axis) : 1;
    *stride = dim == 1 ? 0 : elements;
    elements *= dim;
    ++axis;
  }
}

}  // namespace skiff
