#include "framework/builder/beam_search.h"

#include <utility>

#include "framework/builder/layer_call.h"
#include "framework/ir/program.h"

namespace skiff::layers {

BeamSelection BeamSearch(const Variable& last_ids, const Variable& last_scores, const Variable& ids,
                         const Variable& scores, const BeamSearchOptions& options, Site site) {
  const LayerCall call("beam_search", "", site);
  Op op("beam_search");
  op.SetInput("pre_ids", {call.CheckedName(last_ids)})
      .SetInput("pre_scores", {call.CheckedName(last_scores)});
  if (ids.defined()) op.SetInput("ids", {call.CheckedName(ids)});
  op.SetInput("scores", {call.CheckedName(scores)});
  op.SetAttr("beam_size", options.beam_size).SetAttr("end_id", options.end_id);
  op.SetAttr("level", options.level).SetAttr("is_accumulated", options.is_accumulated);
  const Variable selected_scores = call.NewOutput();
  const Variable parents = call.NewOutput();
  op.SetOutput("selected_scores", {selected_scores.name()});
  op.SetOutput("parent_idx", {parents.name()});
  const Variable selected = call.AppendFor(std::move(op), "selected_ids");
  return {.ids = selected, .scores = selected_scores, .parents = parents};
}

BeamSentences BeamSearchDecode(const Variable& ids, const Variable& scores,
                               const BeamSearchOptions& options, Site site) {
  const LayerCall call("beam_search_decode", "", site);
  for (const Variable& array : {ids, scores}) {
    call.CheckedName(array);
    call.Enforce(array.var().kind == VarKind::kLoDTensorArray, "\"", array.name(), "\" is ",
                 VarKindName(array.var().kind), ", expected an array (CreateArray)");
  }
  Op op("beam_search_decode");
  op.SetInput("Ids", {ids.name()}).SetInput("Scores", {scores.name()});
  op.SetAttr("beam_size", options.beam_size).SetAttr("end_id", options.end_id);
  const Variable sentence_scores = call.NewOutput();
  op.SetOutput("SentenceScores", {sentence_scores.name()});
  const Variable sentences = call.AppendFor(std::move(op), "SentenceIds");
  return {.ids = sentences, .scores = sentence_scores};
}

}  // namespace skiff::layers
