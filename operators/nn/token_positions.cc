// token_positions: where tokens are in their sequences, Out[n, i] = Start[n] + i.
//
// An op of Skiff's own, for models that know the order of tokens by their positions, and for caches
// of keys and values, which go on at Start. It refuses a Start for which there is no room below
// `limit`, so that the ops which read Out needn't.
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"

namespace skiff {
namespace {

void Infer(OpContext& context) {
  const Shape& x = context.Input("X").shape;
  SKIFF_ENFORCE(x.rank() >= 2, kInvalidArgument, "token_positions: X has the shape ", x,
                ", expected [N, L, ...]");
  if (context.HasInput("Start")) CheckInputLike(context, "Start", {x[0]}, DType::kInt64);
  SKIFF_ENFORCE(x[1] <= context.IntAttr("limit"), kInvalidArgument, "token_positions: X of shape ",
                x, " has ", x[1], " tokens in a sequence, expected at most the limit, ",
                context.IntAttr("limit"));
  context.SetOutput("Out", {x[0], x[1]}, DType::kInt64);
}

std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const int64_t tokens = context.Output("Out").shape[1];
  const int64_t last_start = context.IntAttr("limit") - tokens;
  return MakeRowsKernel([=, start = In<int64_t>(context, "Start"),
                         out = Out<int64_t>(context, "Out")](const KernelContext& run) {
    const int64_t* starts = start(run);
    const int64_t sequences = out.shape(run)[0];
    int64_t* to = out(run);
    for (int64_t n = 0; n < sequences; ++n) {
      // Read once, and written at once: another thread may change a feed after it was checked.
      const int64_t first = starts == nullptr ? 0 : starts[n];
      SKIFF_ENFORCE(first >= 0 && first <= last_start, kOutOfRange, "token_positions: Start[", n,
                    "] is ", first, ", expected 0 to ", last_start, " for ", tokens,
                    " tokens at positions below ", last_start + tokens);
      if (tokens > 0) to[n * tokens] = first;
    }
    ParallelFor(sequences * tokens, 16384, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // First tokens have theirs; other threads read it.
        const int64_t place = i % tokens;
        if (place > 0) to[i] = to[i - place] + place;
      }
    });
  });
}

}  // namespace

void RegisterTokenPositions(OpRegistry& registry) {
  OpDef def;
  def.type = "token_positions";
  def.doc = "Out[n, i] = Start[n] + i: the positions of tokens in their sequences.";
  def.inputs = {{.name = "X", .doc = "The tokens, [N, L, ...]; of any dtype.", .shape_only = true},
                {.name = "Start",
                 .doc = "[N], int64: the position of each sequence's first token, from 0 to limit "
                        "- L; 0 if absent.",
                 .dispensable = true,
                 .checks_data = true}};
  def.outputs = {{.name = "Out", .doc = "[N, L], int64."}};
  def.attrs = {{.name = "limit",
                .type = AttrType::kInt,
                .default_value = int32_t{2147483647},
                .doc = "Positions are below that.",
                .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 0; },
                .expected = "at least 0",
                .refusal = ErrorCode::kOutOfRange}};
  def.infer = Infer;
  def.kernel_dtype_slot = "Out";
  def.precision = Precision::kNone;
  def.no_gradient_reason = "positions are whole numbers";
  registry.Add(std::move(def));
  registry.AddCpuKernels<int64_t>(
      "token_positions", []<typename>(PrepareContext& context) { return Prepare(context); });
}

}  // namespace skiff
