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
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/nn/attention/rotary_columns.h"
#include "operators/nn/attention/rotary_rows.h"
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

// Positions of which the sines and cosines are products of two: those of the multiple of kSpan
// below, and those of the rest. So kSpan positions in a row cost one call of sine and cosine, and
// each still depends on nothing but the position. Float64 has calls for each.
template <typename Wide>
inline constexpr int64_t kSpan = sizeof(Wide) == sizeof(double) ? 1 : 16;

// What the kernel knows of the angles of each pair before it runs.
template <typename Wide>
struct Angles {
  struct Pair {
    double frequency;
    // Of the positions from 0 on.
    std::array<std::complex<double>, kSpan<Wide>> turns;
  };

  Angles(const RotaryColumns& columns, double direction) {
    for (int64_t i = 0; i < columns.pairs; ++i) {
      Pair pair{.frequency = direction * std::exp(static_cast<double>(i) * columns.log_step)};
      for (int64_t at = 0; at < kSpan<Wide>; ++at) {
        pair.turns[static_cast<size_t>(at)] =
            std::polar(1.0, static_cast<double>(at) * pair.frequency);
      }
      pairs.push_back(pair);
    }
  }

  std::vector<Pair> pairs;
};

// The positions whose sines and cosines a run needs, a row of the table for each.
struct TablePlaces {
  // Of tokens at `positions`, whose rows of the table are those of the range that contains them, or
  // if that has more positions than there are tokens, those of the tokens.
  static TablePlaces Of(const int64_t* positions, int64_t tokens) {
    const auto [low, high] = std::minmax_element(positions, positions + tokens);
    const uint64_t span = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
    if (span >= static_cast<uint64_t>(tokens)) return {.positions = positions, .count = tokens};
    return {.low = *low, .count = static_cast<int64_t>(span) + 1};
  }

  int64_t PositionOf(int64_t row) const {
    return positions == nullptr ? low + row : positions[row];
  }

  const int64_t* positions = nullptr;  // nullptr: those from `low` on
  int64_t low = 0;
  int64_t count = 0;
};

// The sines and cosines of a run.
template <typename Wide>
struct RotaryTable {
  RotaryTurn<Wide> At(int64_t row) const {
    return {.cosines = memory + 2 * row * width, .sines = memory + (2 * row + 1) * width};
  }

  Wide* memory;
  int64_t width;
};

// Computes rows [begin, end) of the table.
template <typename Wide>
void FillTable(const RotaryColumns& columns, const Angles<Wide>& angles, const TablePlaces& places,
               const RotaryTable<Wide>& table, int64_t begin, int64_t end) {
  // A few rows at a time, so that what a pair writes stays in the cache.
  for (int64_t first = begin; first < end; first += 16) {
    const int64_t last = std::min(end, first + 16);
    for (int64_t i = 0; i < columns.pairs; ++i) {
      const auto& pair = angles.pairs[static_cast<size_t>(i)];
      int64_t below = 0;
      std::complex<double> turn;
      for (int64_t row = first; row < last; ++row) {
        const int64_t position = places.PositionOf(row);
        const int64_t rest = position & (kSpan<Wide> - 1);
        if (row == first || position - rest != below) {
          below = position - rest;
          const double angle = static_cast<double>(below) * pair.frequency;
          turn = {std::cos(angle), std::sin(angle)};
        }
        const std::complex<double>& more = pair.turns[static_cast<size_t>(rest)];
        // Not the product of std::complex, which checks for NaN.
        const double cosine = turn.real() * more.real() - turn.imag() * more.imag();
        const double sine = turn.imag() * more.real() + turn.real() * more.imag();
        table.At(row).Set(columns, i, static_cast<Wide>(cosine), static_cast<Wide>(sine));
      }
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
  const int64_t most = positions.is_there() ? MultiplyCounts(shape[0], tokens) : tokens;
  const int64_t table_width = RotaryTurn<Wide>::WidthOf(columns);
  const int memory =
      context.RequestWorkspace(ByteCount(MultiplyCounts(most, 2 * table_width), kDTypeOf<Wide>));
  const int copy =
      positions.is_there() ? context.RequestWorkspace(ByteCount(most, DType::kInt64)) : -1;
  const int64_t width = 2 * columns.pairs * columns.heads;
  const TurnRotaryRow<T> turn_row = TurnRotaryRowOf<T>();
  return MakeRowsKernel([=, angles = Angles<Wide>(columns, direction)](const KernelContext& run) {
    const int64_t rows = x.shape(run)[0] * tokens;
    if (rows == 0) return;
    const RotaryTable<Wide> table = {static_cast<Wide*>(run.workspace(memory)), table_width};
    TablePlaces places = {.count = std::min(rows, tokens)};
    int64_t* own = nullptr;
    if (positions.is_there()) {
      // A copy: what finds a row of the table must not change.
      own = static_cast<int64_t*>(run.workspace(copy));
      std::copy_n(positions(run), rows, own);
      places = TablePlaces::Of(own, rows);
    }
    ParallelFor(places.count, GrainOf(16 * columns.pairs), [&](int64_t begin, int64_t end) {
      FillTable(columns, angles, places, table, begin, end);
    });
    const T* from = x(run);
    T* to = y(run);
    ParallelFor(rows, GrainOf(width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t at = row;
        if (own == nullptr) {
          at = row % tokens;
        } else if (places.positions == nullptr) {
          at = own[row] - places.low;
        }
        turn_row(columns, from + row * width, table.At(at), to + row * width);
      }
    });
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
