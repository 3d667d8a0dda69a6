#include "framework/builder/tagging.h"

#include <utility>

#include "framework/builder/initializer.h"
#include "framework/builder/layer_call.h"

namespace skiff::layers {
namespace {

// Returns the transitions between the tags of the emissions.
Variable Transitions(const LayerCall& call, const Variable& emission, const ParamAttr& attr) {
  call.CheckedName(emission);
  const std::vector<int64_t>& dims = emission.dims();
  call.Enforce(!dims.empty() && dims.back() > 0, "\"", emission.name(),
               "\" has no known number of tags in its last dim");
  const int64_t tags = dims.back();
  return call.CreateParameter(attr, "w", {tags + 2, tags}, emission.dtype(), initializer::Xavier());
}

void SetIfDefined(const LayerCall& call, const char* slot, const Variable& x, Op* op) {
  if (x.defined()) op->SetInput(slot, {call.CheckedName(x)});
}

}  // namespace

Variable LinearChainCrf(const Variable& emission, const Variable& tags,
                        const LinearChainCrfOptions& options, Site site) {
  const LayerCall call("linear_chain_crf", options.name, site);
  Op op("linear_chain_crf");
  op.SetInput("Emission", {call.CheckedName(emission)});
  op.SetInput("Transition", {Transitions(call, emission, options.param_attr).name()});
  op.SetInput("Label", {call.CheckedName(tags)});
  SetIfDefined(call, "Length", options.length, &op);
  for (const char* saved : {"Alpha", "EmissionExps", "TransitionExps"}) {
    op.SetOutput(saved, {call.NewSavedOutput()});
  }
  return call.AppendFor(std::move(op), "LogLikelihood");
}

Variable CrfDecoding(const Variable& emission, const CrfDecodingOptions& options, Site site) {
  const LayerCall call("crf_decoding", "", site);
  const ParamAttr& attr = options.param_attr;
  call.Enforce(attr.shared.defined() || !attr.name.empty(),
               "param_attr names no parameter, expected that of LinearChainCrf");
  Op op("crf_decoding");
  op.SetInput("Emission", {call.CheckedName(emission)});
  op.SetInput("Transition", {Transitions(call, emission, attr).name()});
  SetIfDefined(call, "Label", options.tags, &op);
  SetIfDefined(call, "Length", options.length, &op);
  const Variable path = call.AppendFor(std::move(op), "ViterbiPath");
  path.StopGradient();
  return path;
}

ChunkScores ChunkEval(const Variable& inference, const Variable& tags,
                      const ChunkEvalOptions& options, Site site) {
  const LayerCall call("chunk_eval", "", site);
  Op op("chunk_eval");
  op.SetInput("Inference", {call.CheckedName(inference)});
  op.SetInput("Label", {call.CheckedName(tags)});
  SetIfDefined(call, "SeqLength", options.length, &op);
  op.SetAttr("num_chunk_types", options.types).SetAttr("chunk_scheme", options.scheme);
  op.SetAttr("excluded_chunk_types", options.excluded_types);
  ChunkScores scores;
  const std::vector<std::pair<const char*, Variable*>> others = {
      {"Recall", &scores.recall},
      {"F1-Score", &scores.f1},
      {"NumInferChunks", &scores.inferred},
      {"NumLabelChunks", &scores.labelled},
      {"NumCorrectChunks", &scores.correct}};
  for (const auto& [slot, output] : others) {
    *output = call.NewOutput();
    op.SetOutput(slot, {output->name()});
  }
  scores.precision = call.AppendFor(std::move(op), "Precision");
  scores.precision.StopGradient();
  for (const auto& [slot, output] : others) output->StopGradient();
  return scores;
}

}  // namespace skiff::layers
