#include "framework/builder/attention_decoder.h"

#include <utility>
#include <vector>

#include "framework/builder/initializer.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/tensor_layers.h"
#include "framework/tensor/shape.h"

namespace skiff::layers {
namespace {

int64_t WidthOf(const LayerCall& call, const Variable& x) {
  call.CheckedName(x);
  call.Enforce(x.dims().size() == 2 && x.dims()[1] > 0, "input \"", x.name(), "\" has the shape ",
               Shape(x.dims()), ", expected [rows, width] with a known width");
  return x.dims()[1];
}

void CheckChoice(const LayerCall& call, const char* option, const std::string& found,
                 const char* one, const char* other) {
  call.Enforce(found == one || found == other, option, " = \"", found, "\", expected ", one, " or ",
               other);
}

// One call of the layer, which makes its parameters.
class DecoderCall {
 public:
  DecoderCall(const LayerCall& call, const AttentionDecoderOptions& options, DType dtype, Site site)
      : call_(call), options_(options), dtype_(dtype), site_(site) {
    CheckChoice(call, "cell", options.cell, "gru", "lstm");
    CheckChoice(call, "score", options.score, "additive", "dot");
    CheckChoice(call, "attends", options.attends, "before", "after");
    call.Enforce(options.size >= 1, "size = ", options.size, ", expected at least 1");
    call.Enforce(is_lstm() || !options.initial_cell.defined(),
                 "found an initial_cell, expected none for cell = gru");
    call.Enforce(is_lstm() || options.forget_bias == 0, "forget_bias = ", options.forget_bias,
                 ", expected 0 for cell = gru");
  }

  bool is_lstm() const { return options_.cell == "lstm"; }

  // Sets Input and the weights of the cell.
  void SetCell(const Variable& words, int64_t context_width, Op* op) const {
    std::vector<int64_t> sections = {WidthOf(call_, words)};
    if (options_.attends == "before") sections.push_back(context_width);
    if (is_lstm()) sections.push_back(options_.size);
    const std::vector<Variable> parts = Parts(sections);
    op->SetInput("Input", {Mul(words, parts[0], {}, site_).name()});
    if (options_.attends == "before") op->SetInput("ContextWeight", {parts[1].name()});
    op->SetInput(
        "Weight",
        {is_lstm() ? parts.back().name()
                   : Weight(options_.hidden_attr, "hidden_w", {options_.size, gates()}).name()});
    if (!options_.bias_attr.has_value()) return;
    // LstmUnit's has one dim, GruUnit's two.
    const Variable bias = is_lstm()
                              ? Reshape(Bias(*options_.bias_attr, {gates()}), {1, gates()}, site_)
                              : Bias(*options_.bias_attr, {1, gates()});
    op->SetInput("Bias", {bias.name()});
  }

  // Sets the weights of the scores.
  void SetScores(int64_t key_width, Op* op) const {
    if (options_.query_attr.has_value()) {
      op->SetInput("QueryWeight",
                   {Weight(*options_.query_attr, "query_w", {options_.size, key_width}).name()});
    }
    if (options_.query_bias_attr.has_value())
      op->SetInput("QueryBias", {Bias(*options_.query_bias_attr, {key_width}).name()});
    if (options_.score == "additive") {
      op->SetInput("ScoreWeight", {Weight(options_.score_attr, "score_w", {key_width, 1}).name()});
    }
  }

 private:
  int64_t gates() const { return (is_lstm() ? 4 : 3) * options_.size; }

  // The rows of param_attr's parameter, in sections of so many.
  std::vector<Variable> Parts(const std::vector<int64_t>& sections) const {
    int64_t rows = 0;
    for (const int64_t section : sections) rows += section;
    const Variable weight = Weight(options_.param_attr, "w", {rows, gates()});
    if (sections.size() == 1) return {weight};
    return SplitSections(weight, sections, 0, site_);
  }
  Variable Weight(const ParamAttr& attr, const char* suffix,
                  const std::vector<int64_t>& dims) const {
    return call_.CreateParameter(attr, suffix, dims, dtype_, initializer::Xavier());
  }
  Variable Bias(const ParamAttr& attr, const std::vector<int64_t>& dims) const {
    return call_.CreateParameter(attr, "b", dims, dtype_, initializer::Constant(0));
  }

  const LayerCall& call_;
  const AttentionDecoderOptions& options_;
  DType dtype_;
  Site site_;
};

}  // namespace

AttentionDecoderStates AttentionDecoder(const Variable& words, const Variable& encoded,
                                        const Variable& keys,
                                        const AttentionDecoderOptions& options, Site site) {
  const LayerCall call("attention_decoder", options.name, site);
  const int64_t context_width = WidthOf(call, encoded);
  const int64_t key_width = WidthOf(call, keys);
  call.CheckedName(words);
  const DecoderCall decoder(call, options, words.dtype(), site);
  Op op("attention_decoder");
  op.SetAttr("cell", options.cell)
      .SetAttr("score", options.score)
      .SetAttr("attends", options.attends)
      .SetAttr("forget_bias", options.forget_bias);
  decoder.SetCell(words, context_width, &op);
  op.SetInput("Encoded", {encoded.name()}).SetInput("Keys", {keys.name()});
  decoder.SetScores(key_width, &op);
  if (options.initial_hidden.defined())
    op.SetInput("H0", {call.CheckedName(options.initial_hidden)});
  if (options.initial_cell.defined()) op.SetInput("C0", {call.CheckedName(options.initial_cell)});

  AttentionDecoderStates states;
  states.context = call.NewOutput();
  states.weights = call.NewOutput();
  op.SetOutput("Context", {states.context.name()})
      .SetOutput("AttentionWeights", {states.weights.name()});
  std::vector<const char*> saved = {"BatchGate", "BatchQuery"};
  if (decoder.is_lstm()) {
    states.cell = call.NewOutput();
    op.SetOutput("Cell", {states.cell.name()});
    saved.push_back("BatchCellPreAct");
  }
  for (const char* slot : saved) op.SetOutput(slot, {call.NewSavedOutput()});
  states.hidden = call.AppendFor(std::move(op), "Hidden");
  return states;
}

}  // namespace skiff::layers
