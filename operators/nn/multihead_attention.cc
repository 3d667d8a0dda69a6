// multihead_attention: what each query finds in a sequence, in several heads at once. The columns
// of Query, Key and Value are those of head 0, then those of head 1, and so on; with Q, K and V
// those of one head of one sequence,
//
//   S = scale · Q K' + Bias,   P = softmax of S's rows,   Out = (P · Mask / (1 - p)) V
//
// Source: Vaswani et al. 2017. No more than a tile of S is ever in memory: a tile's contribution to
// Out is added with the maximum and sum so far, and the gradient computes S again (Dao et al.,
// FlashAttention, arXiv 2205.14135). The pass fuse_attention makes it of the ops of Fluid that
// compute the same.
//
// Mask drops weights as the op dropout with upscale_in_train does to a tensor P of
// [N, heads, Lq, Lk]: with the op's id, or the same seed, the same ones are dropped. A row of
// scores that are all -inf gives NaN, as softmax does; a row that a Bias of -1e9 hides as a whole
// gives the mean of V's rows, up to the rounding of the scores.
//
// Gradient, with dP = (dOut V') · Mask / (1 - p):
//   dS = P · (dP - sum over a row of dOut · Out),  dQ = scale · dS K,  dK = scale · dS' Q
//   dV = (P · Mask / (1 - p))' dOut
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/common/philox_words.h"
#include "operators/nn/kernels/attention.h"
#include "operators/nn/kernels/norm_arguments.h"

namespace skiff {
namespace {

// Seed, op id and step.
constexpr int64_t kKeyNumbers = 3;

bool IsPacked(const OpContext& context) {
  SKIFF_ENFORCE(context.HasInput("Key") == context.HasInput("Value"), kInvalidArgument,
                context.op().type, ": found only one of Key and Value, expected both, or neither ",
                "with a packed Query");
  return !context.HasInput("Key");
}

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
                IsPacked(context) ? " times num_heads" : "",
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

// Returns the sizes; -1 is unknown.
AttentionSizes ParseSizes(const OpContext& context) {
  AttentionSizes sizes;
  sizes.heads = context.IntAttr("num_heads");
  sizes.causal = context.Attr<bool>("causal");
  const Shape& query = SequenceShape(context, "Query");
  sizes.batch = query[0];
  sizes.queries = query[1];
  sizes.keys = query[1];
  if (IsPacked(context)) {
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
  CheckBias(context, sizes);
  return sizes;
}

int64_t Columns(const AttentionSizes& sizes) {
  return sizes.width < 0 ? -1 : sizes.width * sizes.heads;
}
Shape OutShape(const AttentionSizes& sizes) { return {sizes.batch, sizes.queries, Columns(sizes)}; }
Shape StatisticsShape(const AttentionSizes& sizes) {
  return {sizes.batch, sizes.heads, sizes.queries};
}

bool Draws(const OpContext& context) {
  return context.Attr<float>("dropout_prob") > 0 && !context.Attr<bool>("is_test");
}

void Infer(OpContext& context) {
  const AttentionSizes sizes = ParseSizes(context);
  const DType dtype = context.Input("Query").dtype;
  context.SetOutputLike("Out", "Query");
  context.SetOutput("Out", OutShape(sizes), dtype);
  context.SetOutput("RowMax", StatisticsShape(sizes), dtype);
  context.SetOutput("RowSum", StatisticsShape(sizes), dtype);
  context.SetOutput("DropoutKey", {kKeyNumbers}, DType::kInt64);
}

void InferGrad(OpContext& context) {
  const AttentionSizes sizes = ParseSizes(context);
  const DType dtype = context.Input("Query").dtype;
  CheckInputLike(context, "Out", OutShape(sizes), dtype);
  CheckInputLike(context, "Out@GRAD", OutShape(sizes), dtype);
  CheckInputLike(context, "RowMax", StatisticsShape(sizes), dtype);
  CheckInputLike(context, "RowSum", StatisticsShape(sizes), dtype);
  if (context.HasInput("DropoutKey"))
    CheckInputLike(context, "DropoutKey", {kKeyNumbers}, DType::kInt64);
  SKIFF_ENFORCE(!Draws(context) || context.HasInput("DropoutKey"), kInvalidArgument,
                context.op().type, ": DropoutKey is missing, expected that of the forward op");
  context.SetOutputLike("Query@GRAD", "Query");
  if (IsPacked(context)) return;
  context.SetOutputLike("Key@GRAD", "Key");
  context.SetOutputLike("Value@GRAD", "Value");
}

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

// Query, Key and Value, or their gradients: which of the three is `part`.
HeadPlaces PlacesOf(const OpContext& context, const AttentionSizes& sizes, int part,
                    bool gradient) {
  static constexpr const char* kSlots[] = {"Query", "Key", "Value"};
  const bool packed = IsPacked(context);
  const std::string slot = kSlots[packed ? 0 : part];
  const int64_t columns = sizes.heads * sizes.width;
  return {.argument = gradient ? context.OutputIndex(slot + "@GRAD") : context.InputIndex(slot),
          .first = packed ? part * columns : 0,
          .stride = packed ? 3 * columns : columns,
          .length = part == 0 ? sizes.queries : sizes.keys,
          .width = sizes.width};
}

// The bias of each head of each sequence.
struct BiasPlaces {
  explicit BiasPlaces(const OpContext& context) : argument(context.InputIndex("Bias")) {
    if (argument < 0) return;
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

  template <typename T>
  HeadRows<const T> At(const KernelContext& run, int64_t n, int64_t h) const {
    if (argument < 0) return {};
    return {run.input(argument).data<T>() + n * sequence + h * head, row};
  }

  int argument;
  // Strides.
  int64_t row = 0;
  int64_t head = 0;
  int64_t sequence = 0;
};

// What forward and backward have in common: the arguments of a head, scratch memory, threads.
template <typename T>
class AttentionCall {
 public:
  AttentionCall(PrepareContext& context)
      : sizes_(ParseSizes(context)),
        query_(PlacesOf(context, sizes_, 0, false)),
        key_(PlacesOf(context, sizes_, 1, false)),
        value_(PlacesOf(context, sizes_, 2, false)),
        bias_(context),
        scale_(static_cast<T>(context.Attr<float>("scale"))),
        scratch_bytes_(RoundUp(AttentionScratchBytes<T>(sizes_), 64)) {
    if (!Draws(context)) return;
    const double probability = context.Attr<float>("dropout_prob");
    dropout_.threshold = DropThreshold(probability);
    dropout_.scale = 1 / (1 - probability);
  }

  const AttentionSizes& sizes() const { return sizes_; }
  int64_t head_count() const { return sizes_.batch * sizes_.heads; }
  bool draws() const { return dropout_.threshold != 0; }

  // Requests memory for up to `tasks` tasks at a time.
  void RequestScratch(PrepareContext& context, int64_t tasks) {
    slots_ = std::clamp<int64_t>(tasks, 1, omp_get_max_threads());
    workspace_ = context.RequestWorkspace(MultiplyCounts(slots_, scratch_bytes_));
  }
  int64_t slots() const { return slots_; }

  // Calls run_task(task, scratch) for tasks [0, tasks). Neighbours run at the same time: they read
  // the same keys, and where attention is causal they take about the same time.
  template <typename Task>
  void ForTasks(const KernelContext& run, int64_t tasks, const Task& run_task) const {
    auto* memory = static_cast<char*>(run.workspace(workspace_));
    ParallelFor(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        for (int64_t task = slot; task < tasks; task += slots_)
          run_task(task, memory + slot * scratch_bytes_);
      }
    });
  }

  // `head`: of all sequences' heads.
  HeadArguments<T> Arguments(const KernelContext& run, const RandomKey& key, int64_t head) const {
    const int64_t n = head / sizes_.heads;
    const int64_t h = head % sizes_.heads;
    const auto rows = [&](const HeadPlaces& places) {
      return places.At<const T>(run.input(places.argument).template data<T>(), n, h);
    };
    HeadArguments<T> arguments{.query = rows(query_),
                               .key = rows(key_),
                               .value = rows(value_),
                               .bias = bias_.At<T>(run, n, h),
                               .scale = scale_,
                               .dropout = dropout_};
    arguments.dropout.key = key;
    arguments.dropout.first_word = static_cast<uint64_t>(head) *
                                   static_cast<uint64_t>(sizes_.queries) *
                                   static_cast<uint64_t>(sizes_.keys);
    return arguments;
  }

  HeadPlaces OutPlaces() const {
    return {.stride = Columns(sizes_), .length = sizes_.queries, .width = sizes_.width};
  }

 private:
  AttentionSizes sizes_;
  HeadPlaces query_;
  HeadPlaces key_;
  HeadPlaces value_;
  BiasPlaces bias_;
  T scale_;
  WeightDropout dropout_;
  int64_t scratch_bytes_;
  int64_t slots_ = 1;
  int workspace_ = -1;
};

template <typename T>
class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(PrepareContext& context)
      : call_(context),
        seed_(context.IntAttr("seed")),
        fix_seed_(context.Attr<bool>("fix_seed")),
        out_(context.OutputIndex("Out")),
        row_max_(context.OutputIndex("RowMax")),
        row_sum_(context.OutputIndex("RowSum")),
        dropout_key_(context.OutputIndex("DropoutKey")) {
    call_.RequestScratch(context, Tasks());
  }

  void Run(const KernelContext& run) override {
    const RandomKey key = DropoutStream(run.random_key(), seed_, fix_seed_);
    StoreKey(run, key);
    const AttentionSizes& sizes = call_.sizes();
    const HeadPlaces places = call_.OutPlaces();
    T* out = run.output(out_).template data<T>();
    T* row_max = OutputData<T>(run, row_max_);
    T* row_sum = OutputData<T>(run, row_sum_);
    call_.ForTasks(run, Tasks(), [&](int64_t task, void* scratch) {
      const int64_t head = task / sizes.query_tiles();
      const int64_t first_row = head * sizes.queries;
      const HeadOutputs<T> outputs{.out = places.At(out, head / sizes.heads, head % sizes.heads),
                                   .row_max = row_max == nullptr ? nullptr : row_max + first_row,
                                   .row_sum = row_sum == nullptr ? nullptr : row_sum + first_row};
      AttendTile<T>(sizes, call_.Arguments(run, key, head), outputs, task % sizes.query_tiles(),
                    scratch);
    });
  }

 private:
  int64_t Tasks() const { return call_.head_count() * call_.sizes().query_tiles(); }

  void StoreKey(const KernelContext& run, const RandomKey& key) const {
    if (dropout_key_ < 0) return;
    auto* numbers = run.output(dropout_key_).template data<int64_t>();
    numbers[0] = static_cast<int64_t>(key.seed);
    numbers[1] = static_cast<int64_t>(key.op_id);
    numbers[2] = static_cast<int64_t>(key.step);
  }

  AttentionCall<T> call_;
  int64_t seed_;
  bool fix_seed_;
  int out_;
  int row_max_;
  int row_sum_;
  int dropout_key_;
};

template <typename T>
class AttentionGradKernel final : public Kernel {
 public:
  explicit AttentionGradKernel(PrepareContext& context)
      : call_(context),
        query_(PlacesOf(context, call_.sizes(), 0, true)),
        key_(PlacesOf(context, call_.sizes(), 1, true)),
        value_(PlacesOf(context, call_.sizes(), 2, true)),
        out_(context.InputIndex("Out")),
        out_gradient_(context.InputIndex("Out@GRAD")),
        row_max_(context.InputIndex("RowMax")),
        row_sum_(context.InputIndex("RowSum")),
        dropout_key_(context.InputIndex("DropoutKey")) {
    const AttentionSizes& sizes = call_.sizes();
    call_.RequestScratch(context,
                         call_.head_count() * std::max(sizes.query_tiles(), sizes.key_tiles()));
  }

  void Run(const KernelContext& run) override {
    const AttentionSizes& sizes = call_.sizes();
    const RandomKey key = LoadKey(run);
    const TileRange queries{0, sizes.query_tiles()};
    const TileRange keys{0, sizes.key_tiles()};
    if (sizes.queries == 0 || sizes.keys == 0) return ClearGradients(run);
    if (RunsWholeHeads()) {
      call_.ForTasks(run, call_.head_count(), [&](int64_t head, void* scratch) {
        AttendGradient<T>(sizes, call_.Arguments(run, key, head), Gradients(run, head), queries,
                          keys, scratch);
      });
      return;
    }
    call_.ForTasks(run, call_.head_count() * keys.end, [&](int64_t task, void* scratch) {
      const int64_t head = task / keys.end;
      const int64_t tile = task % keys.end;
      HeadGradients<T> gradients = Gradients(run, head);
      gradients.query = {};
      AttendGradient<T>(sizes, call_.Arguments(run, key, head), gradients, queries,
                        {tile, tile + 1}, scratch);
    });
    call_.ForTasks(run, call_.head_count() * queries.end, [&](int64_t task, void* scratch) {
      const int64_t head = task / queries.end;
      const int64_t tile = task % queries.end;
      HeadGradients<T> gradients = Gradients(run, head);
      gradients.key = {};
      gradients.value = {};
      AttendGradient<T>(sizes, call_.Arguments(run, key, head), gradients, {tile, tile + 1}, keys,
                        scratch);
    });
  }

 private:
  // A head as one task takes 5 products for each pair of tiles; two passes, one for keys and one
  // for queries, take 7, but their tasks are small enough for all threads to have one. The bits are
  // the same.
  bool RunsWholeHeads() const {
    const int64_t heads = call_.head_count();
    return 5 * RoundUp(heads, call_.slots()) <= 7 * heads;
  }

  RandomKey LoadKey(const KernelContext& run) const {
    if (!call_.draws()) return {};
    const auto* numbers = run.input(dropout_key_).template data<int64_t>();
    return {static_cast<uint64_t>(numbers[0]), static_cast<uint64_t>(numbers[1]),
            static_cast<uint64_t>(numbers[2])};
  }

  // Sums over no queries or no keys.
  void ClearGradients(const KernelContext& run) const {
    for (const HeadPlaces& places : {query_, key_, value_}) {
      if (places.argument < 0) continue;
      Tensor& gradient = run.output(places.argument);
      std::fill_n(gradient.template data<T>(), gradient.element_count(), T{0});
    }
  }

  HeadGradients<T> Gradients(const KernelContext& run, int64_t head) const {
    const AttentionSizes& sizes = call_.sizes();
    const int64_t n = head / sizes.heads;
    const int64_t h = head % sizes.heads;
    const HeadPlaces out = call_.OutPlaces();
    const auto rows = [&](const HeadPlaces& places) {
      return places.At(OutputData<T>(run, places.argument), n, h);
    };
    return {.out = out.At(InputData<T>(run, out_), n, h),
            .out_gradient = out.At(InputData<T>(run, out_gradient_), n, h),
            .row_max = InputData<T>(run, row_max_) + head * sizes.queries,
            .row_sum = InputData<T>(run, row_sum_) + head * sizes.queries,
            .query = rows(query_),
            .key = rows(key_),
            .value = rows(value_)};
  }

  AttentionCall<T> call_;
  HeadPlaces query_;
  HeadPlaces key_;
  HeadPlaces value_;
  int out_;
  int out_gradient_;
  int row_max_;
  int row_sum_;
  int dropout_key_;
};

std::vector<AttrDef> Attributes() {
  return {{.name = "num_heads",
           .type = AttrType::kInt,
           .default_value = int32_t{1},
           .doc = "The number of heads that the columns are split into.",
           .accepts = [](const Attribute& value) { return std::get<int32_t>(value) >= 1; },
           .expected = "at least 1",
           .refusal = ErrorCode::kOutOfRange},
          {.name = "scale",
           .type = AttrType::kFloat,
           .default_value = 1.0f,
           .doc = "The factor of the products of queries and keys."},
          {.name = "causal",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Query i sees the keys up to i + Lk - Lq only: the last query sees all."},
          {.name = "dropout_prob",
           .type = AttrType::kFloat,
           .default_value = 0.0f,
           .doc = "The probability of a weight to be dropped in training; the others are divided "
                  "by 1 - dropout_prob.",
           .accepts =
               [](const Attribute& value) {
                 const float p = std::get<float>(value);
                 return p >= 0.0f && p < 1.0f;
               },
           .expected = "a probability in [0, 1)",
           .refusal = ErrorCode::kOutOfRange},
          {.name = "is_test",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Evaluation: nothing is dropped."},
          {.name = "fix_seed",
           .type = AttrType::kBool,
           .default_value = false,
           .doc = "Draw by `seed` instead of the run's seed, even if it is 0."},
          {.name = "seed",
           .type = AttrType::kInt,
           .default_value = int32_t{0},
           .doc = "Not 0: draw by this seed, the same in every op that has it."}};
}

std::vector<SlotDef> Inputs() {
  return {{.name = "Query",
           .doc = "[N, Lq, C], C columns for all heads; packed, [N, L, 3 C]: the columns of the "
                  "queries, of the keys, of the values."},
          {.name = "Key", .doc = "[N, Lk, C]; absent if Query is packed.", .dispensable = true},
          {.name = "Value", .doc = "[N, Lk, C]; absent if Query is packed.", .dispensable = true},
          {.name = "Bias",
           .doc = "Added to the scores: [N, heads, Lq, Lk] or its last dims; any but Lk may be 1.",
           .dispensable = true}};
}

// 2 FLOP for each column of each pair of a query and a key that it sees, in `products` products.
double PairFlop(const OpContext& context, double products) {
  const AttentionSizes sizes = ParseSizes(context);
  const auto queries = static_cast<double>(sizes.queries);
  const auto keys = static_cast<double>(sizes.keys);
  const double pairs = queries * (sizes.causal ? keys - (queries - 1) / 2 : keys);
  return 2 * products * static_cast<double>(sizes.batch) * static_cast<double>(Columns(sizes)) *
         pairs;
}

std::vector<Op> GradientOps(const GradContext& context) {
  const std::vector<std::string> of_bias = context.InputGrad("Bias");
  SKIFF_ENFORCE(
      std::ranges::all_of(of_bias, [](const auto& name) { return name == kEmptyVarName; }),
      kUnimplemented,
      "multihead_attention: a gradient of Bias is wanted, which is not provided, "
      "expected a mask without one (stop_gradient)");
  static const GradRule rule =
      GradOp("multihead_attention_grad",
             {"Query", "Key", "Value", "Bias", "Out", "RowMax", "RowSum", "DropoutKey", "Out@GRAD"},
             {"Query@GRAD", "Key@GRAD", "Value@GRAD"});
  return rule(context);
}

OpDef AttentionDef() {
  OpDef def;
  def.type = "multihead_attention";
  def.doc =
      "Out = softmax(scale * Q K' + Bias) V for each head's columns Q, K, V of Query, Key, Value, "
      "with weights dropped in training; memory grows with the length, not with its square.";
  def.inputs = Inputs();
  def.outputs = {{.name = "Out", .doc = "[N, Lq, C]."},
                 {.name = "RowMax",
                  .doc = "[N, heads, Lq]: each query's largest score.",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "RowSum",
                  .doc = "[N, heads, Lq]: the sum of exp(score - RowMax).",
                  .dispensable = true,
                  .intermediate = true},
                 {.name = "DropoutKey",
                  .doc = "[3], int64: seed, op id and step that the dropped weights depend on.",
                  .dispensable = true,
                  .intermediate = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.grad = GradientOps;
  def.flop = [](const OpContext& context) { return PairFlop(context, 2); };
  def.random = true;
  return def;
}

OpDef AttentionGradDef() {
  OpDef def;
  def.type = "multihead_attention_grad";
  def.doc =
      "With the weights P, from scores that are computed again, and dP = (dOut V') * Mask / (1 - "
      "p): dS = P * (dP - sum of dOut * Out), dQ = scale * dS K, dK = scale * dS' Q, dV = (P * "
      "Mask / (1 - p))' dOut. Bias has no gradient.";
  def.inputs = Inputs();
  for (SlotDef& slot : def.inputs) slot.doc = "Of multihead_attention.";
  def.inputs.insert(def.inputs.end(),
                    {{.name = "Out", .doc = "Of multihead_attention."},
                     {.name = "RowMax", .doc = "Of multihead_attention."},
                     {.name = "RowSum", .doc = "Of multihead_attention."},
                     {.name = "DropoutKey",
                      .doc = "Of multihead_attention; needed where weights are dropped.",
                      .dispensable = true},
                     {.name = "Out@GRAD", .doc = "The gradient of Out."}});
  def.outputs = {{.name = "Query@GRAD", .doc = "Like Query.", .dispensable = true},
                 {.name = "Key@GRAD", .doc = "Like Key.", .dispensable = true},
                 {.name = "Value@GRAD", .doc = "Like Value.", .dispensable = true}};
  def.attrs = Attributes();
  def.infer = InferGrad;
  def.no_gradient_reason = "second derivatives are not provided";
  def.flop = [](const OpContext& context) { return PairFlop(context, 5); };
  return def;
}

}  // namespace

void RegisterMultiheadAttention(OpRegistry& registry) {
  registry.Add(AttentionDef());
  registry.Add(AttentionGradDef());
  registry.AddCpuKernels<float, double>(
      "multihead_attention", []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<AttentionKernel<T>>(context);
      });
  registry.AddCpuKernels<float, double>(
      "multihead_attention_grad",
      []<typename T>(PrepareContext& context) -> std::unique_ptr<Kernel> {
        return std::make_unique<AttentionGradKernel<T>>(context);
      });
}

}  // namespace skiff
