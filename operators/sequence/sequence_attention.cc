// sequence_attention: attention of a query over the rows of each sequence
// (kernels/token_attention.h).
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
#include "operators/sequence/kernels/column_sums.h"
#include "operators/sequence/kernels/sequence_rows.h"
#include "operators/sequence/kernels/token_attention_arguments.h"
#include "operators/sequence/kernels/workspace.h"

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

void Infer(OpContext& context) {
  const DType dtype = context.Input("Query").dtype;
  const Shape out = ContextShape(context);
  const int64_t tokens = context.Input("Encoded").shape[0];
  const int64_t key_width = RowWidth(context, "Keys");
  CheckInputLike(context, "Query", {out[0], key_width}, dtype);
  CheckInputLike(context, "Encoded", {tokens, out[1]}, dtype);
  CheckInputLike(context, "Keys", {tokens, key_width}, dtype);
  const auto score = context.Attr<std::string>("score");
  const bool has_weight = context.HasInput("ScoreWeight");
  SKIFF_ENFORCE(has_weight == (score == "additive"), kInvalidArgument, context.op().type,
                ": ScoreWeight is ", has_weight ? "there" : "absent", " and score is \"", score,
                "\", expected it with \"additive\" and nothing else");
  if (has_weight) CheckInputLike(context, "ScoreWeight", {key_width, 1}, dtype);
  context.SetOutput("Context", out, dtype);
  context.SetOutput("AttentionWeights", {tokens, 1}, dtype);
  context.ShareLoD("AttentionWeights", "Encoded");
}

// Calls body(i, its rows) for each sequence, on several threads.
template <typename T, typename Body>
void ForEachSentence(const KernelContext& run, const AttentionArguments<T>& seen,
                     const Body& body) {
  const SequenceRows sentences = seen.Sentences(run);
  const int64_t elements = seen.encoded.count(run) + seen.keys.count(run);
  ParallelFor(sentences.size(), SequenceGrain(sentences.size(), elements),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) body(i, sentences[i]);
              });
}

template <typename T>
std::unique_ptr<Kernel> Prepare(PrepareContext& context) {
  const AttentionArguments<T> seen(context);
  const In<T> query(context, "Query");
  const Out<T> out(context, "Context");
  const Out<T> weights(context, "AttentionWeights");
  return MakeRowsKernel([=](const KernelContext& run) {
    const auto functions = AttentionFunctions<T>::Used();
    ForEachSentence(run, seen, [&](int64_t i, const RowRange& rows) {
      functions.forward(seen.Tokens(run, rows), query(run) + i * seen.key_width,
                        weights(run) + rows.begin, out(run) + i * seen.width);
    });
  });
}

template <typename T>
class GradKernel final : public Kernel {
 public:
  explicit GradKernel(PrepareContext& context)
      : seen_(context),
        gradients_(context),
        query_(context, "Query"),
        scores_(context, context.Input("Encoded").shape[0]),
        queries_(context, gradients_.of_query, context.Input("Query").shape[0], seen_.key_width),
        score_weights_(context,
                       gradients_.of_score_weight.is_there() ? context.Input("Query").shape[0] : 0,
                       seen_.key_width) {}

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    const Out<T>& of_score_weight = gradients_.of_score_weight;
    const bool wants_scores = gradients_.of_query.is_there() || gradients_.of_keys.is_there() ||
                              of_score_weight.is_there();
    const auto functions = AttentionFunctions<T>::Used();
    ForEachSentence(run, seen_, [&](int64_t i, const RowRange& rows) {
      if (wants_scores) {
        functions.backward(seen_.Tokens(run, rows), query_(run) + i * seen_.key_width,
                           Weights(run, rows), Gradient(run, i, rows));
      }
      if (gradients_.of_encoded.is_there()) WriteEncodedGradient(run, i, rows);
    });
    if (!of_score_weight.is_there()) return;
    AddUpColumns(score_weights_(run), seen_.Sentences(run).size(), seen_.key_width, seen_.key_width,
                 of_score_weight(run));
  }

 private:
  const T* Weights(const KernelContext& run, const RowRange& rows) const {
    return gradients_.weights(run) + rows.begin;
  }
  const T* ContextGradient(const KernelContext& run, int64_t i) const {
    return gradients_.of_context(run) + i * seen_.width;
  }

  // What the function reads and writes for sequence i, with zeros where it adds.
  AttentionGradient<T> Gradient(const KernelContext& run, int64_t i, const RowRange& rows) const {
    const int64_t width = seen_.key_width;
    const T* weights = gradients_.of_weights(run);
    T* keys = gradients_.of_keys(run);
    if (keys != nullptr) {
      keys += rows.begin * width;
      std::fill_n(keys, rows.count() * width, T{0});
    }
    T* score_weight = nullptr;
    if (gradients_.of_score_weight.is_there()) {
      score_weight = score_weights_(run) + i * width;
      std::fill_n(score_weight, width, T{0});
    }
    return {.context = ContextGradient(run, i),
            .weights = weights == nullptr ? nullptr : weights + rows.begin,
            .scores = scores_(run) + rows.begin,
            .query = queries_(run) + i * width,
            .keys = keys,
            .score_weight = score_weight};
  }

  void WriteEncodedGradient(const KernelContext& run, int64_t i, const RowRange& rows) const {
    const T* weights = Weights(run, rows);
    const T* context = ContextGradient(run, i);
    T* to = gradients_.of_encoded(run) + rows.begin * seen_.width;
    for (int64_t s = 0; s < rows.count(); ++s, to += seen_.width) {
      for (int64_t k = 0; k < seen_.width; ++k) to[k] = weights[s] * context[k];
    }
  }

  AttentionArguments<T> seen_;
  SequenceAttentionGradients<T> gradients_;
  In<T> query_;
  Workspace<T> scores_;
  OutputOrWorkspace<T> queries_;  // the gradient of Query
  Workspace<T> score_weights_;    // the gradient of ScoreWeight by sequence
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
                 {.name = "AttentionWeights",
                  .doc = "[tokens, 1], ragged like Encoded.",
                  .keeps_float32 = true}};
  def.attrs = Attributes();
  def.infer = Infer;
  def.precision = Precision::kLow;
  AddGrad(registry, &def);
  registry.Add(std::move(def));
  registry.AddCpuKernels<float, double>(
      "sequence_attention",
      []<typename T>(PrepareContext& context) { return Prepare<T>(context); });
}

}  // namespace skiff
