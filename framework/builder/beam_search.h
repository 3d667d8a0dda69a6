// Beam search, as Fluid's programs have it: a loop whose hypotheses are the rows of ragged
// variables. Errors of all layers: layers.h.
//
// The loop keeps ids and scores in arrays, an element for each step; the search begins with element
// 0, one row for each source: [sources, 1] with the LoD [[0, 1, …], [0, 1, …]].
//
//   layers::While loop(goes_on);
//   loop.Body([&] {
//     Variable last = layers::ArrayRead(ids, step), score = layers::ArrayRead(scores, step);
//     // State i belongs to sequence i of the lowest level, which has the hypotheses that go on.
//     Variable state = layers::SequenceExpand(layers::ArrayRead(states, step), score);
//     Variable next = layers::LoDReset(Step(state, last), score);
//     auto best = layers::TopK(layers::Softmax(Scores(next)), width);
//     Variable total = layers::ElementwiseAdd(layers::Log(best.values),
//                                             layers::Reshape(score, {-1}), {.axis = 0});
//     auto selected = layers::BeamSearch(last, score, best.indices, total, {width, end_id});
//     layers::Increment(step);
//     layers::ArrayWrite(next, step, states);
//     layers::ArrayWrite(selected.ids, step, ids);
//     layers::ArrayWrite(selected.scores, step, scores);
//     layers::AssignTo(layers::LogicalAnd(layers::LessThan(step, most),
//                          layers::LogicalNot(layers::IsEmpty(selected.ids))), goes_on);
//   });
//   auto found = layers::BeamSearchDecode(ids, scores, {width, end_id});
#pragma once

#include <cstdint>

#include "framework/builder/layers.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

struct BeamSearchOptions {
  int64_t beam_size = 0;       // the most hypotheses of a source; must be set
  int64_t end_id = 0;          // that ends a hypothesis
  int64_t level = 0;           // of the LoD of the scores, whose sequences are the sources
  bool is_accumulated = true;  // scores of whole hypotheses; else probabilities of ids
};
struct BeamSelection {
  Variable ids = {};      // [selected, 1]; two LoD levels: by source, by hypothesis
  Variable scores = {};   // [selected, 1], with the same LoD
  Variable parents = {};  // [selected], int32: the hypothesis that each continues
};
// Selects the best continuations of the hypotheses of each source. A row of last_ids and
// last_scores [hypotheses, 1] has the last id and the score of a hypothesis, which continues with
// one of the ids [hypotheses, candidates]; undefined ids: 0, 1, … A hypothesis that has ended goes
// on with end_id alone and keeps the score. A source whose selected hypotheses have all ended
// before gets none any more. In the body of a loop only a run tells how many rows there are. No
// gradient flows.
BeamSelection BeamSearch(const Variable& last_ids, const Variable& last_scores, const Variable& ids,
                         const Variable& scores, const BeamSearchOptions& options,
                         Site site = Site::current());

struct BeamSentences {
  Variable ids = {};     // [ids]; two LoD levels: the hypotheses of a source, the ids of each
  Variable scores = {};  // [ids], with the same LoD: of a hypothesis up to each id
};
// Returns the hypotheses of each source, the best hypothesis first, of arrays of BeamSearch's
// selections. The ids of a hypothesis begin with element 0 of the array; end_id is there once. The
// ops that follow are planned when the number of ids is known.
BeamSentences BeamSearchDecode(const Variable& ids, const Variable& scores,
                               const BeamSearchOptions& options, Site site = Site::current());

}  // namespace skiff::layers
