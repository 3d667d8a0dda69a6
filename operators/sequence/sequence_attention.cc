// sequence_attention: attention of a query over the rows of each sequence (kernels/attention.h).
//
//   score_s          = v · tanh(Query_i + Keys_s), additive, or Query_i · Keys_s, dot
//   AttentionWeights = the softmax of the scores over the rows s of sequence i
//   Context_i        = Σ AttentionWeights_s Encoded_s; zeros if the sequence has no rows
//
// v is ScoreWeight. Additive scores are those of Bahdanau, Cho, Bengio 2015 (A.1.2), dot those of
// Luong, Pham, Manning 2015. Source: none, Fluid makes it of sequence_expand_as, sequence_softmax,
// sequence_pool and others, whose results have a number for each column of each key.
//
// Gradient: tanh(query + key) is computed again, so that nothing of that size is kept.
#include <algorithm>
#include <string>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/op/grad.h"
#include "framework/op/registry.h"
#include "operators/common/input_checks.h"
#include "operators/sequence/kernels/attention.h"
#include "operators/sequence/kernels/recurrent_weight.h"
#include "operators/sequence/kernels/row_sums.h"
#include "operators/sequence/kernels/sequence_rows.h"

namespace skiff {
namespace {

// Returns [sequences, E].
Shape ContextShape(const OpContext& context) {
  const Shape& query = context.Input("Query").shape;
  RowWidth(context, "Query");
  const int64_t sequences =
      MergeDims(query[0], OneLevelSequenceCount(context, "Encoded"),
                context.op().type + ": the rows of Query and the sequences of Encoded");
  return {sequences, RowWidth(context, "Encoded")};
}

// Checks the arguments that the op and its gradient have in common.
void CheckArguments(const OpContext& context) {
  const std::string& op = context.op().type;
  const DType dtype = context.Input("Query").dtype;
  const Shape out = ContextShape(context);
  const int64_t tokens = context.Input("Encoded").shape[0];
  const int64_t key_width = RowWidth(context, "Keys");
  CheckInputLike(context, "Query", {out[0], key_width}, dtype);
  CheckInputLike(context, "Encoded", {tokens, out[1]}, dtype);
  CheckInputLike(context, "Keys", {tokens, key_width}, dtype);
  const auto score = context.Attr<std::string>("score");
  const bool has_weight = context.HasInput("ScoreWeight");
  SKIFF_ENFORCE(has_weight == (score == "additive"), kInvalidArgument, op, ": ScoreWeight is ",
                has_weight ? "there" : "absent", " and score is \"", score,
                "\", expected it with \"additive\" and nothing else");
  if (has_weight) CheckInputLike(context, "ScoreWeight", {key_width, 1}, dtype);
}

Shape WeightsShape(const OpContext& context) { return {context.Input("Encoded").shape[0], 1}; }

void Infer(OpContext& context) {
  CheckArguments(context);
  const DType dtype = context.Input("Query").dtype;
  context.SetOutput("Context", ContextShape(context), dtype);
  context.SetOutput("AttentionWeights", WeightsShape(context), dtype);
  context.ShareLoD("AttentionWeights", "Encoded");
}

void InferGrad(OpContext& context) {
  CheckArguments(context);
  const DType dtype = context.Input("Query").dtype;
  CheckInputLike(context, "Context@GRAD", ContextShape(context), dtype);
  CheckInputLike(context, "AttentionWeights", WeightsShape(context), dtype);
  if (context.HasInput("AttentionWeights@GRAD"))
    CheckInputLike(context, "AttentionWeights@GRAD", WeightsShape(context), dtype);
  for (const char* slot : {"Query", "Encoded", "Keys", "ScoreWeight"}) {
    if (context.HasInput(slot)) context.SetOutputLike(GradName(slot), slot);
  }
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class AttentionKernel : public Kernel {
 public:
  bool TakesFewerRows() const override { return true; }

 protected:
  explicit AttentionKernel(const PrepareContext& context)
      : width_(RowWidth(context, "Encoded")),
        key_width_(RowWidth(context, "Keys")),
        query_(context, "Query"),
        encoded_(context, "Encoded"),
        keys_(context, "Keys"),
        score_weight_(context, "ScoreWeight") {}

  SequenceRows Sequences(const KernelContext& run) const {
    return SequenceRows(encoded_.tensor(run));
  }
  // Calls body(i, its rows) for each sequence, on several threads.
  template <typename Body>
  void ForEach(const KernelContext& run, const Body& body) const {
    const SequenceRows sequences = Sequences(run);
    const int64_t elements = encoded_.count(run) + keys_.count(run);
    ParallelFor(sequences.size(), SequenceGrain(sequences.size(), elements),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) body(i, sequences[i]);
                });
  }

  const T* Query(const KernelContext& run, int64_t i) const { return query_(run) + i * key_width_; }
  AttendedTokens<T> Seen(const KernelContext& run, const RowRange& rows) const {
    return {.tokens = rows.count(),
            .width = width_,
            .key_width = key_width_,
            .encoded = encoded_(run) + rows.begin * width_,
            .keys = keys_(run) + rows.begin * key_width_,
            .score_weight = score_weight_(run)};
  }

  int64_t width_;
  int64_t key_width_;

 private:
  In<T> query_;
  In<T> encoded_;
  In<T> keys_;
  In<T> score_weight_;
};

template <typename T>
class ForwardKernel final : public AttentionKernel<T> {
 public:
  explicit ForwardKernel(const PrepareContext& context)
      : AttentionKernel<T>(context),
        context_(context, "Context"),
        weights_(context, "AttentionWeights") {}

  void Run(const KernelContext& run) override {
    T* contexts = context_(run);
    T* weights = weights_(run);
    this->ForEach(run, [&](int64_t i, const RowRange& rows) {
      Attend(this->Seen(run, rows), this->Query(run, i), weights + rows.begin,
             contexts + i * this->width_);
    });
  }

 private:
  Out<T> context_;
  Out<T> weights_;
};

template <typename T>
class GradKernel final : public AttentionKernel<T> {
 public:
  explicit GradKernel(PrepareContext& context)
      : AttentionKernel<T>(context),
        weights_(context, "AttentionWeights"),
        context_grad_(context, "Context@GRAD"),
        weights_grad_(context, "AttentionWeights@GRAD"),
        query_grad_(context, "Query@GRAD"),
        encoded_grad_(context, "Encoded@GRAD"),
        keys_grad_(context, "Keys@GRAD"),
        score_weight_grad_(context, "ScoreWeight@GRAD"),
        scores_(RequestNumbers<T>(context, context.Input("Encoded").shape[0], 1)),
        queries_(RequestRows(context, !query_grad_.is_there())),
        score_weights_(RequestRows(context, score_weight_grad_.is_there())) {}

  void Run(const KernelContext& run) override {
    const bool wants_scores =
        query_grad_.is_there() || keys_grad_.is_there() || score_weight_grad_.is_there();
    this->ForEach(run, [&](int64_t i, const RowRange& rows) {
      if (wants_scores) {
        AttendBackward(this->Seen(run, rows), this->Query(run, i), Weights(run, rows),
                       Gradient(run, i, rows));
      }
      if (encoded_grad_.is_there()) WriteEncodedGradient(run, i, rows);
    });
    if (!score_weight_grad_.is_there()) return;
    SumRows(Data(run, score_weights_), this->Sequences(run).size(), key_width_, key_width_,
            score_weight_grad_(run));
  }

 private:
  // A workspace with a row like a query for each sequence, if it is wanted.
  int RequestRows(PrepareContext& context, bool is_wanted) const {
    return RequestNumbers<T>(context, is_wanted ? context.Input("Query").shape[0] : 0, key_width_);
  }
  static T* Data(const KernelContext& run, int workspace) {
    return static_cast<T*>(run.workspace(workspace));
  }
  const T* Weights(const KernelContext& run, const RowRange& rows) const {
    return weights_(run) + rows.begin;
  }
  const T* ContextGradient(const KernelContext& run, int64_t i) const {
    return context_grad_(run) + i * width_;
  }

  // What AttendBackward reads and writes for sequence i, with zeros where it adds.
  AttentionGradient<T> Gradient(const KernelContext& run, int64_t i, const RowRange& rows) const {
    const T* weights = weights_grad_(run);
    T* queries = query_grad_.is_there() ? query_grad_(run) : Data(run, queries_);
    T* keys = keys_grad_(run);
    if (keys != nullptr) {
      keys += rows.begin * key_width_;
      std::fill_n(keys, rows.count() * key_width_, T{0});
    }
    T* score_weight = nullptr;
    if (score_weight_grad_.is_there()) {
      score_weight = Data(run, score_weights_) + i * key_width_;
      std::fill_n(score_weight, key_width_, T{0});
    }
    return {.context = ContextGradient(run, i),
            .weights = weights == nullptr ? nullptr : weights + rows.begin,
            .scores = Data(run, scores_) + rows.begin,
            .query = queries + i * key_width_,
            .keys = keys,
            .score_weight = score_weight};
  }

  void WriteEncodedGradient(const KernelContext& run, int64_t i, const RowRange& rows) const {
    const T* weights = Weights(run, rows);
    const T* context = ContextGradient(run, i);
    T* to = encoded_grad_(run) + rows.begin * width_;
    for (int64_t s = 0; s < rows.count(); ++s, to += width_) {
      for (int64_t k = 0; k < width_; ++k) to[k] = weights[s] * context[k];
    }
  }

  using AttentionKernel<T>::width_;
  using AttentionKernel<T>::key_width_;
  In<T> weights_;
  In<T> context_grad_;
  In<T> weights_grad_;
  Out<T> query_grad_;
  Out<T> encoded_grad_;
  Out<T> keys_grad_;
  Out<T> score_weight_grad_;
  // Workspaces.
  int scores_;
  int queries_;        // the gradient of Query, if nobody wants it
  int score_weights_;  // the gradient of ScoreWeight by sequence
};

std::vector<AttrDef> Attributes() {
  return {ChoiceAttr("score", "additive", {"additive", "dot"},
                     "v · tanh(query + key), or query · key.")};
}

void AddGrad(OpRegistry& registry, OpDef* forward) {
  OpDef def = GradientOf(forward,
                         {"Query", "Encoded", "Keys", "ScoreWeight", "AttentionWeights",
                          "Context@GRAD", Optional("AttentionWeights@GRAD")},
                         {"Query@GRAD", "Encoded@GRAD", "Keys@GRAD", "ScoreWeight@GRAD"});
  def.doc = "The gradients of the attention.";
  def.infer = InferGrad;
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "sequence_attention_grad",
      []<typename T>(PrepareContext& context) { return std::make_unique<GradKernel<T>>(context); });
}

}  // namespace

void RegisterSequenceAttention(OpRegistry& registry) {
  OpDef def;
  def.type = "sequence_attention";
  def.doc =
      "Attention of a query over the rows of each sequence: their mean, weighted by the softmax of "
      "their scores.";
  def.inputs = {
      {.name = "Query", .doc = "[sequences, A]: what each sequence is looked at for."},
      {.name = "Encoded",
       .doc = "Ragged, one level, [tokens, E]: what is looked at. As many sequences as Query has "
              "rows."},
      {.name = "Keys", .doc = "[tokens, A]: what each token is found by. Its LoD doesn't count."},
      {.name = "ScoreWeight", .doc = "[A, 1]: v of additive scores.", .dispensable = true}};
  def.outputs = {{.name = "Context", .doc = "[sequences, E]; zeros for a sequence without tokens."},
                 {.name = "AttentionWeights", .doc = "[tokens, 1], ragged like Encoded."}};
  def.attrs = Attributes();
  def.infer = Infer;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>("sequence_attention",
                                        []<typename T>(PrepareContext& context) {
                                          return std::make_unique<ForwardKernel<T>>(context);
                                        });
}

}  // namespace skiff
