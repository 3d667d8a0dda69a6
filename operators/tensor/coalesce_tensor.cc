// coalesce_tensor: the inputs one after the other in one vector, and each of them as it is.
//
// Source: Fluid's coalesce_tensor, as the startup programs of nn.LSTM, nn.GRU and nn.SimpleRNN of
// PaddlePaddle have it. There, Output and FusedOutput share their memory from then on. Here they
// are copies, so what a later op writes to one of them doesn't show in the other.
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "operators/common/memory_mover.h"
#include "operators/tensor/kernels/data_movement.h"

namespace skiff {
namespace {

constexpr const char* kType = "coalesce_tensor";
// What Fluid aligns tensors to on a CPU.
constexpr int64_t kChunkBytes = 4096;

// Returns the number of elements, or -1 if a dim is unknown.
int64_t ElementsOf(const Shape& shape) { return ProductOrUnknown(shape, 0, shape.rank()); }

// Returns the number of elements that each input begins after the one before it is a multiple of.
int64_t AlignmentOf(const OpContext& context, DType dtype) {
  if (!context.Attr<bool>("use_align")) return 1;
  const int64_t given = context.IntAttr("align_size");
  const int64_t bytes = given > 0 ? given : kChunkBytes;
  const int64_t element = SizeOf(dtype);
  SKIFF_ENFORCE(bytes % element == 0, kInvalidArgument, kType, ": align_size = ", bytes,
                ", expected a multiple of the ", element, " bytes of a ", dtype);
  return bytes / element;
}

// Returns where each input begins in FusedOutput, and at the end the length of that; -1: unknown.
std::vector<int64_t> OffsetsOf(const OpContext& context) {
  const int64_t alignment = AlignmentOf(context, context.Input("Input").dtype);
  std::vector<int64_t> offsets = {0};
  for (size_t i = 0; i < context.InputCount("Input"); ++i) {
    const int64_t elements = ElementsOf(context.Input("Input", i).shape);
    if (elements < 0 || offsets.back() < 0) {
      offsets.push_back(-1);
      continue;
    }
    const int64_t end = offsets.back() + RoundUp(elements, alignment);
    CheckElementLimit(std::vector<int64_t>{end});
    offsets.push_back(end);
  }
  return offsets;
}

void InferCoalesceTensor(OpContext& context) {
  const size_t count = context.InputCount("Input");
  SKIFF_ENFORCE(context.InputCount("Input") == context.OutputCount("Output"), kInvalidArgument,
                kType, ": ", count, " variables in Input and ", context.OutputCount("Output"),
                " in Output, expected as many");
  const DType dtype = DTypeFromAttribute(static_cast<int32_t>(context.IntAttr("dtype")));
  for (size_t i = 0; i < count; ++i) {
    const DType found = context.Input("Input", i).dtype;
    SKIFF_ENFORCE(found == dtype, kInvalidArgument, kType, ": Input[", i, "] is ", found,
                  ", expected ", dtype, " as the attribute dtype says");
    context.SetOutputLike("Output", "Input", i);
  }
  context.SetOutput("FusedOutput", {OffsetsOf(context).back()}, dtype);
}

std::unique_ptr<Kernel> PrepareCoalesceTensor(PrepareContext& context) {
  struct Part {
    In<> input;
    Out<> output;
    int64_t begin;  // in FusedOutput, in bytes
    int64_t end;
  };
  const std::vector<int64_t> offsets = OffsetsOf(context);
  const int64_t element = SizeOf(context.Input("Input").dtype);
  std::vector<Part> parts;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    parts.push_back({.input = {context, "Input", i},
                     .output = {context, "Output", i},
                     .begin = offsets[i] * element,
                     .end = offsets[i + 1] * element});
  }
  // Of each part the values in both outputs, and the zeros behind them.
  return MakeKernel([parts = std::move(parts), fused = Out<>(context, "FusedOutput"),
                     runs = RoomForRuns(3 * static_cast<int64_t>(offsets.size()))](
                        const KernelContext& run) mutable {
    auto* whole = static_cast<char*>(fused(run));
    runs.clear();
    for (const Part& part : parts) {
      const Tensor& input = part.input.tensor(run);
      const int64_t bytes = input.byte_count();
      char* to = whole + part.begin;
      if (bytes > 0) runs.push_back({input.raw_data(), to, bytes});
      const int64_t gap = part.end - part.begin - bytes;
      if (gap > 0) runs.push_back({nullptr, to + bytes, gap});
      void* copy = part.output(run);
      if (copy == nullptr || bytes == 0) continue;
      if (copy != input.raw_data()) runs.push_back({input.raw_data(), copy, bytes});
    }
    MemoryMoverOf(run).CopyRuns(run, runs);
  });
}

AttrDef Flag(StaticText name, bool default_value, StaticText doc) {
  return {.name = name, .type = AttrType::kBool, .default_value = default_value, .doc = doc};
}

// An attribute of which one value is supported.
AttrDef Fixed(AttrDef attr, const Attribute& value) {
  attr.accepts = [value](const Attribute& given) { return SameAttribute(given, value); };
  attr.expected = StrCat(PrintAttribute(value),
                         ": outputs share no memory, so only copies of the inputs are provided");
  attr.refusal = ErrorCode::kUnimplemented;
  return attr;
}

}  // namespace

void RegisterCoalesceTensor(OpRegistry& registry) {
  OpDef def;
  def.type = kType;
  def.doc =
      "FusedOutput = the elements of Input[0], Input[1], …, one after the other; Output[i] = "
      "Input[i]. In Fluid, the outputs share their memory; here they are copies.";
  def.inputs = {{.name = "Input", .doc = "One or more tensors of `dtype`.", .duplicable = true}};
  def.outputs = {
      {.name = "Output", .doc = "Like Input.", .duplicable = true},
      {.name = "FusedOutput", .doc = "A vector, with zeros where `use_align` leaves gaps."}};
  def.attrs = {
      {.name = "dtype",
       .type = AttrType::kInt,
       .doc = "The element type of all, as Fluid's enumerator."},
      // Fluid's default, false, leaves the outputs without values.
      Fixed({.name = "copy_data",
             .type = AttrType::kBool,
             .doc = "Must be true: the outputs get the values of Input."},
            true),
      Fixed(Flag("set_constant", false, "Must be false."), false),
      Flag("persist_output", false, "A hint of Fluid's about memory; ignored."),
      {.name = "constant",
       .type = AttrType::kFloat,
       .default_value = 0.0f,
       .doc = "The value of `set_constant`; ignored."},
      Flag("use_align", true, "Whether each input takes a multiple of `align_size` bytes."),
      {.name = "align_size",
       .type = AttrType::kInt,
       .default_value = int32_t{-1},
       .doc = "In bytes; -1: 4096."},
      Fixed({.name = "user_defined_size_of_dtype",
             .type = AttrType::kInt,
             .default_value = int32_t{-1},
             .doc = "Must be -1: elements have the size of `dtype`."},
            int32_t{-1}),
      Fixed({.name = "concated_shapes",
             .type = AttrType::kLongs,
             .default_value = std::vector<int64_t>{},
             .doc = "Must be empty: the inputs have their own shapes."},
            std::vector<int64_t>{})};
  def.infer = InferCoalesceTensor;
  // All tensors have the dtype of the attribute.
  def.precision = Precision::kNone;
  def.no_gradient_reason = "programs have it before a training, to lay out parameters";
  def.in_place = {{"Input", "Output"}};
  registry.Add(std::move(def));
  AddKernelsForAllDTypes(registry, kType, PrepareCoalesceTensor);
}

}  // namespace skiff
