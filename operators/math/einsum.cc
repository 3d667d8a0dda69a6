// einsum: Out[…] = the sum of the products Operands[0][…] * Operands[1][…] * … over all indices
// that Out lacks, where `equation` gives each axis its index, a letter: "bij,jk->bik". An axis of
// extent 1 is repeated along the axes of its letter; a letter twice in a term takes the diagonal.
// Source: PaddlePaddle's einsum, numpy.einsum and torch.einsum.
//
// Operands@GRAD[i] = the einsum of Out@GRAD and the other operands with the letters of operand i,
// repeated along the axes whose letters no other operand and not Out has, and 0 beside diagonals.
//
// PaddlePaddle's gradient op reads the operands, in an order of its own, from InnerCache. Here that
// is the operands themselves, as views, and XShape is nothing: a gradient op takes the shapes from
// InnerCache.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/ir/op_role.h"
#include "framework/op/einsum_equation.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "framework/tensor/dims_agree.h"
#include "operators/common/cpu/gemm.h"
#include "operators/common/cpu/reduce.h"
#include "operators/common/memory_mover.h"
#include "operators/math/kernels/einsum_contractions.h"

namespace skiff {
namespace {

constexpr StaticText kOperands = "Operands";
constexpr StaticText kCache = "InnerCache";
constexpr StaticText kOutGrad = "Out@GRAD";

bool IsGradient(const OpContext& context) { return context.def().FindInput(kOutGrad) != nullptr; }

// The operands that einsum or einsum_grad reads, and their letters.
struct EinsumOperands {
  StaticText slot;
  std::vector<Shape> shapes;
  EinsumTerms terms;
};

EinsumOperands OperandsOf(const OpContext& context) {
  const std::string& type = context.op().type;
  EinsumOperands operands;
  operands.slot = IsGradient(context) ? kCache : kOperands;
  const size_t count = context.InputCount(operands.slot);
  SKIFF_ENFORCE(count > 0, kInvalidArgument, type, ": there are no operands");
  for (size_t i = 0; i < count; ++i) {
    const TensorMeta& operand = context.Input(operands.slot, i);
    SKIFF_ENFORCE(operand.dtype == context.Input(operands.slot).dtype, kInvalidArgument, type, ": ",
                  operands.slot, "[", i, "] is ", operand.dtype, ", ", operands.slot, "[0] ",
                  context.Input(operands.slot).dtype, ", expected one dtype");
    operands.shapes.push_back(operand.shape);
  }
  const std::string& equation = context.Attr<std::string>("equation");
  try {
    operands.terms = ParseEinsum(equation, operands.shapes);
  } catch (const Error& error) {
    throw error.WithContext(StrCat(type, ": equation = \"", equation, "\""));
  }
  return operands;
}

// The extent of each letter.
class EinsumExtents {
 public:
  EinsumExtents(const OpContext& context, const EinsumOperands& operands) {
    for (size_t i = 0; i < operands.shapes.size(); ++i) {
      const std::string where =
          StrCat(context.op().type, ": ", operands.slot, "[", i, "] of shape ", operands.shapes[i]);
      for (const auto& [letter, extent] : Extents(operands, i, where)) {
        Merge(letter, extent, where);
      }
    }
  }

  Shape ShapeOf(const std::string& letters) const {
    Shape shape;
    for (const char letter : letters) shape.Append(extents_.at(letter));
    return shape;
  }

 private:
  // Of one operand, in which the axes of a letter have one extent.
  static std::map<char, int64_t> Extents(const EinsumOperands& operands, size_t i,
                                         const std::string& where) {
    std::map<char, int64_t> extents;
    for (int axis = 0; axis < operands.shapes[i].rank(); ++axis) {
      const char letter = operands.terms.operands[i][static_cast<size_t>(axis)];
      const int64_t extent = operands.shapes[i][axis];
      const auto [found, is_new] = extents.emplace(letter, extent);
      if (is_new) continue;
      found->second = MergeDims(found->second, extent,
                                StrCat(where, ": the diagonal of the axes '", letter, "'"));
    }
    return extents;
  }

  void Merge(char letter, int64_t extent, const std::string& where) {
    const auto [found, is_new] = extents_.emplace(letter, extent);
    int64_t& merged = found->second;
    if (is_new || extent == 1 || extent == merged) return;
    SKIFF_ENFORCE(merged < 0 || merged == 1 || extent < 0, kInvalidArgument, where, ": the axis '",
                  letter, "' has extent ", extent, ", an operand before has ", merged,
                  ", expected equal extents or a 1");
    // An unknown extent beside one above 1 can only be 1 or equal.
    if (merged <= 1 && (merged == 1 || extent > 1)) merged = extent;
  }

  std::map<char, int64_t> extents_;
};

Shape OutShape(const OpContext& context, const EinsumOperands& operands) {
  return EinsumExtents(context, operands).ShapeOf(operands.terms.result);
}

void InferEinsum(OpContext& context) {
  const EinsumOperands operands = OperandsOf(context);
  const DType dtype = context.Input(kOperands).dtype;
  context.SetOutput("Out", OutShape(context, operands), dtype);
  for (const StaticText slot : {kCache, StaticText("XShape")}) {
    SKIFF_ENFORCE(
        context.OutputCount(slot) == 0 || context.OutputCount(slot) == operands.shapes.size(),
        kInvalidArgument, "einsum: ", context.OutputCount(slot), " outputs in ", slot,
        ", expected one for each of ", operands.shapes.size(), " operands");
  }
  for (size_t i = 0; i < operands.shapes.size(); ++i) {
    context.SetOutputLike(kCache, kOperands, i);
    context.SetOutput("XShape", {0}, dtype, i);
  }
}

void InferEinsumGrad(OpContext& context) {
  const EinsumOperands operands = OperandsOf(context);
  const Shape out = OutShape(context, operands);
  const TensorMeta& gradient = context.Input(kOutGrad);
  const DType dtype = context.Input(operands.slot).dtype;
  SKIFF_ENFORCE(DimsAgree(gradient.shape.dims(), out.dims()) && gradient.dtype == dtype,
                kInvalidArgument, "einsum_grad: Out@GRAD is ", gradient.dtype, " ", gradient.shape,
                ", expected ", dtype, " ", out);
  SKIFF_ENFORCE(context.OutputCount("Operands@GRAD") == operands.shapes.size(), kInvalidArgument,
                "einsum_grad: ", context.OutputCount("Operands@GRAD"), " gradients of ",
                operands.shapes.size(), " operands");
  for (size_t i = 0; i < operands.shapes.size(); ++i) {
    context.SetOutputLike("Operands@GRAD", operands.slot, i);
  }
}

double EinsumFlop(const OpContext& context) {
  double flop = 0;
  for (const EinsumContraction& contraction : EinsumContractions(context)) {
    flop += FlopOf(contraction.plan);
  }
  return flop;
}

// As PaddlePaddle writes it. An op without InnerCache, which no program of PaddlePaddle has, gives
// the operands themselves.
std::vector<Op> EinsumGrad(const GradContext& context) {
  Op grad("einsum_grad");
  grad.attrs = context.forward().attrs;
  const std::vector<std::string>& cache = context.Output(kCache);
  const bool has_cache = !cache.empty() && std::ranges::count(cache, kEmptyVarName) == 0;
  grad.SetInput(kCache, has_cache ? cache : context.Input(kOperands));
  grad.SetInput(kOutGrad, context.OutputGrad("Out"));
  if (!context.Output("XShape").empty()) grad.SetInput("x_shape", context.Output("XShape"));
  grad.SetOutput("Operands@GRAD", context.InputGrad(kOperands));
  return {std::move(grad)};
}

AttrDef EquationAttr() {
  return {.name = "equation",
          .type = AttrType::kString,
          .doc =
              "The letters of the axes, \"bij,jk->bik\"; \"...\" for those without a letter. "
              "Without \"->\", Out has the axes of \"...\", then the letters that are there once, "
              "in alphabetical order."};
}

OpDef EinsumDef() {
  OpDef def;
  def.type = "einsum";
  def.doc =
      "Out = the products of the operands' elements, summed over the indices that Out lacks, as "
      "`equation` says. PaddlePaddle's einsum, for any number of operands.";
  def.inputs = {{.name = kOperands, .doc = "Tensors of floats of one dtype.", .duplicable = true}};
  def.outputs = {{.name = "Out", .doc = "The sums."},
                 {.name = kCache,
                  .doc = "The operands, for the gradient.",
                  .duplicable = true,
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "XShape",
                  .doc = "Nothing: [0] for each operand.",
                  .duplicable = true,
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = {EquationAttr()};
  def.infer = InferEinsum;
  def.grad = EinsumGrad;
  def.in_place = {{kOperands, kCache}};
  def.views = {{kOperands, kCache}};
  def.flop = EinsumFlop;
  def.precision = Precision::kLow;
  return def;
}

OpDef EinsumGradDef() {
  OpDef def;
  def.type = "einsum_grad";
  def.doc =
      "Operands@GRAD[i] = the einsum of Out@GRAD and the other operands, with the letters of "
      "operand i.";
  const auto unread = [](StaticText name, StaticText doc) {
    return SlotDef{
        .name = name, .doc = doc, .duplicable = true, .dispensable = true, .shape_only = true};
  };
  def.inputs = {
      {.name = kCache, .doc = "The operands, or InnerCache of einsum.", .duplicable = true},
      {.name = kOutGrad, .doc = "The gradient of Out."},
      unread("x_shape", "XShape of einsum, which isn't read."),
      unread(kOperands, "The operands in programs before PaddlePaddle 2.6, not read.")};
  def.outputs = {
      {.name = "Operands@GRAD", .doc = "The gradients of the operands.", .duplicable = true}};
  def.attrs = {EquationAttr()};
  def.infer = InferEinsumGrad;
  def.no_gradient_reason = "second derivatives are not provided";
  def.kernel_dtype_slot = kOutGrad;
  def.flop = EinsumFlop;
  def.precision = Precision::kLow;
  return def;
}

// ---- kernels of the CPU

template <typename T>
void MultiplyRow(const ElementStep::Loop& loop, int64_t count, const T* a, const T* b, T* out) {
  if (b == nullptr) {
    if (loop.stride_a == 1 && loop.stride_out == 1) {
      std::copy_n(a, count, out);
      return;
    }
    for (int64_t i = 0; i < count; ++i) out[i * loop.stride_out] = a[i * loop.stride_a];
    return;
  }
  using Wide = WideType<T>;
  const auto multiply = [&](int64_t stride_a, int64_t stride_b, int64_t stride_out) {
    for (int64_t i = 0; i < count; ++i) {
      out[i * stride_out] =
          static_cast<T>(static_cast<Wide>(a[i * stride_a]) * static_cast<Wide>(b[i * stride_b]));
    }
  };
  // Strides that the compiler knows make vectors.
  const bool are_ones = loop.stride_a <= 1 && loop.stride_b <= 1 && loop.stride_out == 1;
  if (are_ones && loop.stride_a == 1 && loop.stride_b == 1) return multiply(1, 1, 1);
  if (are_ones && loop.stride_a == 1) return multiply(1, 0, 1);
  if (are_ones && loop.stride_b == 1) return multiply(0, 1, 1);
  multiply(loop.stride_a, loop.stride_b, loop.stride_out);
}

template <typename T>
void MultiplyElements(const ElementStep& step, const T* a, const T* b, T* out) {
  constexpr int64_t kPiece = 16384;
  const ElementStep::Loop row = step.loops.empty() ? ElementStep::Loop() : step.loops.back();
  const int64_t part = std::min(row.extent, kPiece);
  const int64_t parts = (row.extent + part - 1) / part;
  const auto outer = static_cast<int>(step.loops.size()) - 2;
  ParallelFor(step.count() / row.extent * parts, std::max<int64_t>(1, kPiece / part),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t start = i % parts * part;
                  int64_t at_a = start * row.stride_a;
                  int64_t at_b = start * row.stride_b;
                  int64_t at_out = start * row.stride_out;
                  int64_t index = i / parts;
                  for (int k = outer; k >= 0; --k) {
                    const ElementStep::Loop& loop = step.loops[static_cast<size_t>(k)];
                    const int64_t position = index % loop.extent;
                    index /= loop.extent;
                    at_a += position * loop.stride_a;
                    at_b += position * loop.stride_b;
                    at_out += position * loop.stride_out;
                  }
                  MultiplyRow(row, std::min(part, row.extent - start), a + at_a,
                              b == nullptr ? nullptr : b + at_b, out + at_out);
                }
              });
}

struct EinsumOnCpu {
  template <typename T>
  static PreparedStep<T> Prepare(const ElementStep& step, PrepareContext&) {
    return [step](const KernelContext&, const ContractionTensors<T>& tensors) {
      MultiplyElements(step, tensors[step.a], tensors[step.b], tensors.Out(step.out));
    };
  }

  template <typename T>
  static PreparedStep<T> Prepare(const SumStep& step, PrepareContext&) {
    // Of half, no kernel accepts sums.
    if constexpr (sizeof(T) == sizeof(BFloat16)) {
      return {};
    } else {
      return [step, sums = AxisReduction(step.shape, step.is_summed)](
                 const KernelContext&, const ContractionTensors<T>& tensors) {
        sums.Sum(tensors[step.a], tensors.Out(step.out));
      };
    }
  }

  template <typename T>
  static PreparedStep<T> Prepare(const MatrixStep& step, PrepareContext& context) {
    return [a = step.a, b = step.b, out = step.out,
            gemm = std::make_shared<Gemm<T>>(step.spec, context)](
               const KernelContext& run, const ContractionTensors<T>& tensors) {
      gemm->Run(run, tensors[a], tensors[b], tensors.Out(out));
    };
  }

  static void Zero(const KernelContext&, void* to, int64_t bytes) { ZeroBytes(to, bytes); }
  static void Copy(const KernelContext&, const void* from, void* to, int64_t bytes) {
    CopyBytes(from, to, bytes);
  }
};

}  // namespace

std::vector<EinsumContraction> EinsumContractions(const OpContext& context) {
  const EinsumOperands operands = OperandsOf(context);
  const EinsumTerms& terms = operands.terms;
  const auto letters_of = [&](size_t i) {
    return WithLetters(operands.shapes[i], terms.operands[i]);
  };
  const Shape out = OutShape(context, operands);
  const LetteredTensor result = WithLetters(out, terms.result);
  const bool is_gradient = IsGradient(context);
  const size_t count = is_gradient ? operands.shapes.size() : 1;
  std::vector<EinsumContraction> contractions;
  for (size_t i = 0; i < count; ++i) {
    EinsumContraction contraction;
    contraction.result = {is_gradient ? "Operands@GRAD" : "Out", i};
    const Shape& shape = is_gradient ? operands.shapes[i] : out;
    const bool is_there = context.OutputIndex(contraction.result.slot, i) >= 0;
    if (!is_there || shape.element_count() == 0) continue;
    std::vector<LetteredTensor> factors;
    if (is_gradient) {
      contraction.operands.push_back({kOutGrad, 0});
      factors.push_back(result);
    }
    for (size_t k = 0; k < operands.shapes.size(); ++k) {
      if (is_gradient && k == i) continue;
      contraction.operands.push_back({operands.slot, k});
      factors.push_back(letters_of(k));
    }
    contraction.plan =
        PlanContraction(factors, is_gradient ? letters_of(i) : result, shape.element_count());
    contractions.push_back(std::move(contraction));
  }
  return contractions;
}

bool AcceptsEinsumInHalf(const OpContext& context) {
  return AllPlain(context) &&
         std::ranges::all_of(EinsumContractions(context), [](const EinsumContraction& contraction) {
           return RoundsOnce(contraction.plan);
         });
}

void RegisterEinsum(OpRegistry& registry) {
  registry.Add(EinsumDef());
  registry.Add(EinsumGradDef());
  AddEinsumKernels<float, EinsumOnCpu>(registry, PlaceKind::kCpu, "plain");
  AddEinsumKernels<double, EinsumOnCpu>(registry, PlaceKind::kCpu, "plain");
  AddEinsumKernels<BFloat16, EinsumOnCpu>(registry, PlaceKind::kCpu, kNativeHalfKernel,
                                          InstructionSet::kAvx512Bf16);
}

}  // namespace skiff
