// Layers on ragged variables (DataOptions::lod_level): each sequence by itself, whatever its
// length. Errors of all layers: layers.h; the layers here also throw an Error (kInvalidArgument)
// for an x that isn't ragged.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "framework/builder/layers.h"
#include "framework/builder/param_attr.h"
#include "framework/builder/variable.h"

namespace skiff::layers {

// One row for each sequence of x: "SUM", "AVERAGE", "SQRT" (the sum divided by the square root of
// the number of rows), "MAX", "FIRST" or "LAST" of its rows; rows of pad_value for a sequence
// without rows.
Variable SequencePool(const Variable& x, const std::string& type, float pad_value = 0.0f,
                      Site site = Site::current());

// Softmax over the rows of each sequence of x [rows] or [rows, 1].
Variable SequenceSoftmax(const Variable& x, Site site = Site::current());
// The rows of each sequence in reverse order.
Variable SequenceReverse(const Variable& x, Site site = Site::current());
// Each id of x [rows, 1] with the following ids, side by side: [rows, window], with pad_value
// beyond the end of a sequence. A window has at least 2 ids.
Variable SequenceEnumerate(const Variable& x, int64_t window, int64_t pad_value = 0,
                           Site site = Site::current());
// The elements of each sequence of x [rows, …] in rows of `width`, which must divide their number.
Variable SequenceReshape(const Variable& x, int64_t width, Site site = Site::current());

// Repeats each sequence of x as often as the sequence of its number has items in level ref_level of
// y's LoD; -1: the lowest level, whose items are rows. If x isn't ragged, it repeats each row, and
// the result isn't ragged either. Only the LoD of y counts.
Variable SequenceExpand(const Variable& x, const Variable& y, int64_t ref_level = -1,
                        Site site = Site::current());
// Repeats row i of x, which need not be ragged, as often as sequence i of y has rows. The result
// has the LoD of y.
Variable SequenceExpandAs(const Variable& x, const Variable& y, Site site = Site::current());

struct SequenceAttentionOptions {
  std::string score = "additive";  // v · tanh(query + key); "dot": query · key
  ParamAttr score_attr = {};       // v, [width of keys, 1]
  std::string name = {};
};
struct AttendedSequences {
  Variable context = {};  // [sequences, width of encoded]
  Variable weights = {};  // [tokens, 1], with the LoD of encoded
};
// The mean of the rows of each sequence of `encoded`, [tokens, …], weighted by the softmax of their
// scores (Bahdanau, Cho, Bengio 2015; Luong, Pham, Manning 2015): row i of `query`, which need not
// be ragged, looks at sequence i, and each score compares the row with a token's row of `keys`,
// [tokens, width of query]. Zeros for a sequence without tokens.
//
// An op of Skiff's own, which computes the same as SequenceExpandAs, Tanh, SequenceSoftmax and
// SequencePool in less time, and keeps nothing of the size of `keys` for the gradient. Throws an
// Error (kInvalidArgument) for another score, and if shapes don't fit.
AttendedSequences SequenceAttention(const Variable& query, const Variable& keys,
                                    const Variable& encoded,
                                    const SequenceAttentionOptions& options = {},
                                    Site site = Site::current());

// Joins the sequences of the same number: a sequence of each variable, in the order of the
// variables. Throws an Error (kInvalidArgument) if there is no variable.
Variable SequenceConcat(const std::vector<Variable>& xs, Site site = Site::current());

struct PaddedSequences {
  Variable padded = {};  // [sequences, length, …]
  Variable length = {};  // [sequences], int64: the rows of each that aren't padding
};
// The sequences of x [rows, …] as a batch of equal lengths: padded_length, or the length of the
// longest sequence if padded_length is -1. pad_value, one number or a row, stands behind shorter
// sequences. No gradient flows to pad_value.
PaddedSequences SequencePad(const Variable& x, const Variable& pad_value,
                            int64_t padded_length = -1, Site site = Site::current());
// The first length[i] rows of each x[i], as sequences; x [sequences, rows, …] need not be ragged,
// length is [sequences], int64. [rows, …], or [rows, 1] if x is a matrix.
Variable SequenceUnpad(const Variable& x, const Variable& length, Site site = Site::current());
// Rows offset[i] … offset[i] + length[i] - 1 of each sequence i, which must have these rows. Offset
// and length are [sequences, 1], int64.
Variable SequenceSlice(const Variable& x, const Variable& offset, const Variable& length,
                       Site site = Site::current());
// The ids x [rows, 1] without these tokens.
Variable SequenceErase(const Variable& x, const std::vector<int32_t>& tokens,
                       Site site = Site::current());
// x [rows, …], which need not be ragged, plus `updates`: in row i at the elements that sequence i
// of ids [n, 1] (int64) names. Updates [n, 1] has the LoD of ids.
Variable SequenceScatter(const Variable& x, const Variable& ids, const Variable& updates,
                         Site site = Site::current());

struct CtcGreedyDecoderOptions {
  // Of padded sequences, [sequences] or [sequences, 1], int64: the steps of each.
  Variable input_length = {};
  int32_t padding_value = 0;  // what stands behind the labels then
};
struct CtcLabels {
  Variable labels = {};  // ragged, [labels, 1]; with input_length [sequences, steps]
  Variable length = {};  // with input_length: [sequences, 1], the labels of each
};
// The labels of the most probable path through each sequence of probabilities or logits: the class
// with the largest number at each step, repeated ones merged, then without `blank`. x is ragged,
// [rows, classes]; or, with input_length, [sequences, steps, classes] (WarpCtc has the steps
// first). Int64. text::DecodeCtc finds labels that are more probable as a whole.
CtcLabels CtcGreedyDecoder(const Variable& x, int64_t blank,
                           const CtcGreedyDecoderOptions& options = {},
                           Site site = Site::current());

struct SequenceMaskOptions {
  int64_t max_length = -1;  // -1: the largest number of x, which only a run can tell
  DType dtype = DType::kInt64;
};
// For lengths x […], which need not be ragged, […, max_length]: ones at the places below the
// length, zeros behind them.
Variable SequenceMask(const Variable& x, const SequenceMaskOptions& options = {},
                      Site site = Site::current());

// x, ragged or not, with the LoD of y; if y isn't ragged, its numbers (int32) are the offsets of
// one level.
Variable LoDReset(const Variable& x, const Variable& y, Site site = Site::current());
// The same with these offsets: [0, 2, 5] are a sequence of two rows and one of three. The last one
// must be the number of rows.
Variable LoDReset(const Variable& x, const std::vector<int32_t>& offsets,
                  Site site = Site::current());
// x with a further level of sequences below its LoD. Rows of a sequence become sequences of the new
// level, so the new level must have as many sequences as x has rows.
Variable LoDAppend(const Variable& x, const Variable& offsets, Site site = Site::current());
Variable LoDAppend(const Variable& x, const std::vector<int32_t>& offsets,
                   Site site = Site::current());

struct Im2SequenceOptions {
  std::vector<int64_t> kernels = {};  // height and width of a window
  std::vector<int64_t> strides = {1, 1};
  std::vector<int64_t> paddings = {0, 0, 0, 0};  // {top, left, bottom, right}
};
// The windows of each image of x [images, channels, height, width], which need not be ragged, as a
// sequence, line by line: [windows, channels · height of a window · its width].
Variable Im2Sequence(const Variable& x, const Im2SequenceOptions& options,
                     Site site = Site::current());

struct RowConvOptions {
  int64_t future_rows = 0;  // that are added to each row; must be set
  ParamAttr param_attr = {};
  std::string act = {};
  std::string name = {};
};
// Lookahead convolution (Wang et al. 2016): the sum of each row of x and the following rows of the
// sequence, each times a row of a filter [future_rows + 1, width], number by number. x is ragged,
// [rows, width], or a batch [sequences, rows, width].
Variable RowConv(const Variable& x, const RowConvOptions& options, Site site = Site::current());

struct SequenceConvOptions {
  int64_t filters = 0;  // must be set
  int64_t context = 3;  // rows that a filter sees
  // The first row that a filter sees, counted from the row itself; undefined: -(context / 2), as in
  // Fluid.
  std::optional<int64_t> start = {};
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string act = {};
  std::string name = {};
};
// A convolution along each sequence of x [rows, width]: row r of the result [rows, filters] is the
// product of rows r + start … r + start + context - 1, one after the other, with a matrix
// [context · width, filters]. Rows outside the sequence count as zeros.
Variable SequenceConv(const Variable& x, const SequenceConvOptions& options,
                      Site site = Site::current());

struct DynamicGruOptions {
  int64_t size = 0;  // of the state; must be set
  bool is_reverse = false;
  std::string act = "tanh";
  std::string gate_act = "sigmoid";
  // h = u · h' + (1 - u) · c (Cho et al. 2014) instead of h = (1 - u) · h' + u · c.
  bool origin_mode = false;
  Variable initial = {};  // [sequences, size]; undefined: zeros
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string name = {};
};
// A gated recurrent unit (Cho et al. 2014) over each sequence of x [rows, 3 · size], which is the
// input's product with the weights of update gate, reset gate and candidate. Returns the states
// [rows, size].
Variable DynamicGru(const Variable& x, const DynamicGruOptions& options,
                    Site site = Site::current());

struct DynamicLstmOptions {
  int64_t size = 0;  // of the state; must be set
  bool use_peepholes = true;
  bool is_reverse = false;
  std::string gate_act = "sigmoid";
  std::string cell_act = "tanh";
  std::string candidate_act = "tanh";
  Variable initial_hidden = {};  // [sequences, size]; undefined: zeros
  Variable initial_cell = {};    // with initial_hidden, or neither
  ParamAttr param_attr = {};
  ParamAttr bias_attr = {};
  std::string name = {};
};
struct LstmStates {
  Variable hidden = {};  // [rows, size]
  Variable cell = {};    // [rows, size]
};
// Long short-term memory (Hochreiter and Schmidhuber 1997; with peepholes: Gers et al. 2002) over
// each sequence of x [rows, 4 · size], which is the input's product with the weights of candidate,
// input gate, forget gate and output gate. Returns the states after each row.
LstmStates DynamicLstm(const Variable& x, const DynamicLstmOptions& options,
                       Site site = Site::current());

struct GruUnitOptions {
  std::string act = "tanh";  // or "identity", "sigmoid", "relu"
  std::string gate_act = "sigmoid";
  bool origin_mode = false;  // as in DynamicGruOptions
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string name = {};
};
// One step of DynamicGru for each row of x [rows, 3 · size] and of a state [rows, size], which need
// not be ragged. Returns the next state.
Variable GruUnit(const Variable& x, const Variable& state, const GruUnitOptions& options = {},
                 Site site = Site::current());

struct LstmUnitOptions {
  float forget_bias = 0.0f;
  ParamAttr param_attr = {};
  BiasAttr bias_attr = {};
  std::string name = {};
};
// One step of long short-term memory without peepholes, for each row of x [rows, …] and of the
// states before, [rows, size], none of which need be ragged: a product of [x, hidden] with weights
// of input gate, forget gate, output gate and candidate. Returns the next states.
LstmStates LstmUnit(const Variable& x, const Variable& hidden, const Variable& cell,
                    const LstmUnitOptions& options = {}, Site site = Site::current());

}  // namespace skiff::layers
