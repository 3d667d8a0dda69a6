// The arguments of multihead_attention and of its gradient op: sizes, and where the rows of a head
// are.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/op/arguments.h"
#include "framework/op/op_context.h"
#include "operators/nn/attention/head_attention.h"

namespace skiff {

// The numbers in DropoutKey: seed, op id and step.
inline constexpr int64_t kAttentionKeyNumbers = 3;

// Returns whether Query has the columns of all three. Throws Error if only one of Key and Value is
// there.
bool IsPackedAttention(const OpContext& context);

// Returns the sizes; -1 is unknown. Throws Error for arguments that don't fit.
AttentionSizes ParseAttention(const OpContext& context);

// Return the number of columns of all heads, or -1, and the shapes of Out, and of RowMax and
// RowSum.
int64_t ColumnsOf(const AttentionSizes& sizes);
Shape AttentionOutShape(const AttentionSizes& sizes);
Shape AttentionStatisticsShape(const AttentionSizes& sizes);

// Where the heads of an argument are: [N, length, heads * width], or a third of the columns of a
// packed one.
struct HeadPlaces {
  int argument = -1;
  int64_t first = 0;  // column
  int64_t stride = 0;
  int64_t length = 0;
  int64_t width = 0;

  // The rows of a head of a sequence in `data`; absent if that is nullptr.
  template <typename T>
  HeadRows<T> At(T* data, int64_t sequence, int64_t head) const {
    if (data == nullptr) return {};
    return {data + sequence * length * stride + first + head * width, stride};
  }
};

// Throws Error, naming the op, unless the numbers in KeyLengths are in [0, keys]. Without that
// input it does nothing.
void CheckKeyLengths(const KernelContext& run, const In<int64_t>& key_lengths,
                     const AttentionSizes& sizes, std::string_view op);

// Which of the three sequences.
enum class AttentionPart { kQuery, kKey, kValue };

// Returns the places of an input, or of a gradient that is an output.
HeadPlaces InputPlaces(const OpContext& context, const AttentionSizes& sizes, AttentionPart part);
HeadPlaces GradientPlaces(const OpContext& context, const AttentionSizes& sizes,
                          AttentionPart part);
// Returns the places of Out, and of the gradient of Out, in their data.
HeadPlaces OutPlaces(const AttentionSizes& sizes);

// The arguments that only the gradient op has.
template <typename T>
struct AttentionGradArguments {
  AttentionGradArguments(const OpContext& context, const AttentionSizes& sizes)
      : query(GradientPlaces(context, sizes, AttentionPart::kQuery)),
        key(GradientPlaces(context, sizes, AttentionPart::kKey)),
        value(GradientPlaces(context, sizes, AttentionPart::kValue)),
        out(context, "Out"),
        out_gradient(context, "Out@GRAD"),
        row_max(context, "RowMax"),
        row_sum(context, "RowSum"),
        dropout_key(context, "DropoutKey") {}

  // Returns the data of a gradient; nullptr if the op lacks it.
  static T* Data(const KernelContext& run, const HeadPlaces& places) {
    return places.argument < 0 ? nullptr : run.output(places.argument).data<T>();
  }

  // Where the gradients of the heads go.
  HeadPlaces query;
  HeadPlaces key;
  HeadPlaces value;
  In<T> out;
  In<T> out_gradient;
  In<WideType<T>> row_max;
  In<WideType<T>> row_sum;
  In<int64_t> dropout_key;
};

// The bias of each head of each sequence.
struct BiasPlaces {
  explicit BiasPlaces(const OpContext& context);

  template <typename T>
  HeadRows<const T> At(const KernelContext& run, int64_t n, int64_t h) const {
    if (!bias.is_there()) return {};
    const Shape& shape = bias.shape(run);
    // The run's bias may be one for all sequences where the plan's has one for each.
    const bool is_shared = shape.rank() < 4 || shape[0] == 1;
    return {bias.as<T>(run) + (is_shared ? 0 : n * sequence) + h * head, row};
  }

  In<> bias;
  // Strides.
  int64_t row = 0;
  int64_t head = 0;
  int64_t sequence = 0;
};

}  // namespace skiff
