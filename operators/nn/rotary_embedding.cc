// rotary_embedding: turns pairs of the columns of each head by angles that grow with the position.
// With the columns x of a head of width d, for i < d / 2, and the angle
//
//   a = position · base^(-2i / d)
//   y[first] = x[first] · cos a - x[second] · sin a
//   y[second] = x[second] · cos a + x[first] · sin a
//
// The pair is (i, i + d / 2), as in Llama and GPT-NeoX of Hugging Face's Transformers, or with
// `interleaved` (2i, 2i + 1), as in the paper and in GPT-J. Gradient: the same by -a.
//
// Source: Su et al., RoFormer, arXiv 2104.09864. Angles are float64 before their sines and cosines
// are rounded.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/cpu/wide_rows.h"
#include "operators/common/input_checks.h"
#include "operators/nn/attention/rotary_columns.h"
#include "operators/nn/kernels/image_window.h"

namespace skiff {
namespace {

// `slot`: X, or what has its shape.
void Check(const OpContext& context, const char* slot) {
  const Shape& x = context.Input(slot).shape;
  const int64_t heads = context.IntAttr("num_heads");
  SKIFF_ENFORCE(x.rank() == 3, kInvalidArgument, context.op().type, ": ", slot, " has the shape ",
                x, ", expected [N, L, columns]");
  SKIFF_ENFORCE(x[2] < 0 || x[2] % MultiplyCounts(2, heads) == 0, kInvalidArgument,
                context.op().type, ": ", x[2], " columns of ", slot, " can't be ", heads,
                " heads of an even width");
  if (context.HasInput("Positions"))
    CheckInputLike(context, "Positions", {x[0], x[1]}, DType::kInt64);
}

void Infer(OpContext& context) {
  Check(context, "X");
  context.SetOutputLike("Out", "X");
}

void InferGrad(OpContext& context) {
  Check(context, "Out@GRAD");
  context.SetOutputLike("X@GRAD", "Out@GRAD");
}

// Turns the columns of a row. `cosines` and `sines` have a number for each pair. `to` may be `x`.
template <typename T>
void TurnRow(const RotaryColumns& columns, const T* x, const T* cosines, const T* sines, T* to) {
  for (int64_t head = 0; head < columns.heads; ++head) {
    for (int64_t i = 0; i < columns.pairs; ++i) {
      const RotaryPair pair = columns.PairAt(head, i);
      const T first = x[pair.first];
      const T second = x[pair.second];
      to[pair.first] = first * cosines[i] - second * sines[i];
      to[pair.second] = second * cosines[i] + first * sines[i];
    }
  }
}

// The op, or its gradient op if `direction` is -1.
template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context, const char* from_slot, const char* to_slot,
                                double direction) {
  using Wide = WideType<T>;
  const RotaryColumns columns(context, from_slot);
  const Shape& shape = context.Input(from_slot).shape;
  const int64_t tokens = shape[1];
  const In<T> x(context, from_slot);
  const In<int64_t> positions(context, "Positions");
  const Out<T> y(context, to_slot);
  // Sines and cosines of each token; without positions, those of one sequence.
  const int64_t turned = positions.is_there() ? MultiplyCounts(shape[0], tokens) : tokens;
  const int memory = context.RequestWorkspace(
      ByteCount(MultiplyCounts(turned, 2 * columns.pairs), kDTypeOf<Wide>));
  const int64_t width = 2 * columns.pairs * columns.heads;
  const ThreadScratch<T> scratch(context, MultiplyCounts(shape[0], tokens), /*rows=*/1, width);
  std::vector<double> frequencies;
  for (int64_t i = 0; i < columns.pairs; ++i)
    frequencies.push_back(std::exp(static_cast<double>(i) * columns.log_step));
  return MakeRowsKernel([=, frequencies = std::move(frequencies)](const KernelContext& run) {
    const int64_t rows = x.shape(run)[0] * tokens;
    const int64_t* places = positions(run);
    auto* const cosines = static_cast<Wide*>(run.workspace(memory));
    const int64_t turns = places == nullptr ? std::min(rows, tokens) : rows;
    Wide* const sines = cosines + turns * columns.pairs;
    ParallelFor(turns, GrainOf(32 * columns.pairs), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const auto position = static_cast<double>(places == nullptr ? row : places[row]);
        for (int64_t i = 0; i < columns.pairs; ++i) {
          const double angle = position * frequencies[static_cast<size_t>(i)];
          cosines[row * columns.pairs + i] = static_cast<Wide>(std::cos(angle));
          sines[row * columns.pairs + i] = static_cast<Wide>(direction * std::sin(angle));
        }
      }
    });
    const auto turn = [=, x = x(run), y = y(run)](int64_t row, const WideRows<T>& wide) {
      const int64_t turned = (places == nullptr ? row % tokens : row) * columns.pairs;
      Wide* to = PlaceOfRow(y, row * width, wide[0]);
      TurnRow(columns, ReadRow(x, row * width, width, wide[0]), cosines + turned, sines + turned,
              to);
      WriteRow(to, width, y, row * width);
    };
    scratch.ForEach(run, rows, GrainOf(width), turn);
  });
}

OpDef RotaryEmbeddingDef() {
  OpDef def;
  def.type = "rotary_embedding";
  def.doc =
      "Turns each pair (a, b) of columns of a head by the angle p * base^(-2i / d) for position p, "
      "pair i and head width d: (a cos - b sin, b cos + a sin).";
  def.inputs = {{.name = "X", .doc = "[N, L, C], C columns for all heads."},
                {.name = "Positions",
                 .doc = "[N, L], int64: of the tokens; absent: 0 to L - 1.",
                 .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "Like X."}};
  def.attrs = {{.name = "num_heads",
                .type = AttrType::kInt,
                .default_value = int32_t{1},
                .doc = "The number of heads that the columns are split into.",
                .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
                .expected = "at least 1",
                .refusal = ErrorCode::kOutOfRange},
               {.name = "base",
                .type = AttrType::kFloat,
                .default_value = 10000.0f,
                .doc = "What the angles of neighbouring pairs follow from.",
                .accepts =
                    [](const Attribute& value) {
                      return std::get<float>(value) > 0 && std::isfinite(std::get<float>(value));
                    },
                .expected = "a positive number",
                .refusal = ErrorCode::kOutOfRange},
               {.name = "interleaved",
                .type = AttrType::kBool,
                .default_value = false,
                .doc = "Pair i is columns 2i and 2i + 1, else i and i + d / 2."}};
  def.infer = Infer;
  def.precision = Precision::kFollow;
  def.in_place = {{"X", "Out"}};
  return def;
}

OpDef RotaryEmbeddingGradDef(OpDef* forward) {
  OpDef def = GradientOf(forward, {"Positions", "Out@GRAD"}, {"X@GRAD"});
  def.doc = "X@GRAD = Out@GRAD turned by the same angles in the other direction.";
  def.infer = InferGrad;
  def.in_place = {{"Out@GRAD", "X@GRAD"}};
  def.kernel_dtype_slot = "Out@GRAD";
  return def;
}

}  // namespace

void RegisterRotaryEmbedding(OpRegistry& registry) {
  OpDef def = RotaryEmbeddingDef();
  registry.Add(RotaryEmbeddingGradDef(&def));
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double, BFloat16, Float16>(
      "rotary_embedding",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context, "X", "Out", 1); });
  registry.AddCpuKernels<float, double, BFloat16, Float16>(
      "rotary_embedding_grad", []<typename T>(PrepareContext& context) {
        return Prepare<T>(context, "Out@GRAD", "X@GRAD", -1);
      });
}

}  // namespace skiff
