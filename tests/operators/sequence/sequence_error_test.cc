// What the ops on sequences refuse.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/op/registry.h"
#include "operators/sequence/sequence_ops.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/error_text.h"
#include "tests/harness/op_case.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

struct Refused {
  std::string type;
  Arrays inputs;
  AttributeMap attrs;
  std::string message;  // part of it
  // The number of variables in output slots that have another one than 1.
  std::map<std::string, size_t> output_counts = {};
};

Array Rows(int64_t rows, int64_t width = 2) { return Uniform({rows, width}, 1); }
Array Sequences(const std::vector<int64_t>& lengths, int64_t width = 2) {
  int64_t rows = 0;
  for (const int64_t length : lengths) rows += length;
  return Ragged(Rows(rows, width), lengths);
}
Array Column(std::vector<double> values) {
  const Shape shape = {static_cast<int64_t>(values.size()), 1};
  return Values(shape, std::move(values), DType::kInt64);
}
Array Vector(std::vector<double> values, DType dtype = DType::kInt64) {
  const Shape shape = {static_cast<int64_t>(values.size())};
  return Values(shape, std::move(values), dtype);
}

class SequenceErrors : public ::testing::Test {
 protected:
  SequenceErrors() { RegisterSequenceOps(registry_); }

  // Prepares and runs the op.
  void Run(const Refused& refused) const {
    const OpDef& def = registry_.Get(refused.type);
    Op op(refused.type);
    op.attrs = refused.attrs;
    NamedTensors inputs;
    for (const auto& [slot, arrays] : refused.inputs) {
      std::vector<std::string> names;
      for (const Array& array : arrays) {
        names.push_back(StrCat(slot, names.size()));
        inputs[names.back()] = ToTensor(array, array.fixed_dtype ? array.dtype : DType::kFloat32);
      }
      op.SetInput(slot, names);
    }
    for (const SlotDef& slot : def.outputs) {
      const auto count = refused.output_counts.find(std::string(slot.name));
      std::vector<std::string> names(count == refused.output_counts.end() ? 1 : count->second);
      for (size_t i = 0; i < names.size(); ++i) names[i] = StrCat("out_", slot.name, i);
      op.SetOutput(slot.name, names);
    }
    CheckOp(def, op);
    PreparedOp prepared(registry_, op, inputs);
    prepared.Run();
  }

  void ExpectRefused(const std::vector<Refused>& all) const {
    for (const Refused& refused : all) {
      const std::string found = ErrorText([&] { Run(refused); });
      EXPECT_NE(found.find(refused.message), std::string::npos)
          << refused.type << ": found \"" << found << "\", expected \"" << refused.message << '"';
      EXPECT_NE(found.find(refused.type), std::string::npos)
          << "\"" << found << "\" does not name " << refused.type;
    }
  }

  OpRegistry registry_;
};

TEST_F(SequenceErrors, ExpandWantsAsManyItemsAsYHasSequences) {
  const auto expand = [](Array x, Array y, AttributeMap attrs, const std::string& message) {
    return Refused{"sequence_expand",
                   {{"X", {std::move(x)}}, {"Y", {std::move(y)}}},
                   std::move(attrs),
                   message};
  };
  const Array y = Sequences({2, 1});
  const Array two_levels = Ragged(Rows(3), {2}, {2, 1});
  ExpectRefused(
      {expand(Rows(3), y, {}, "X has 3 rows, expected 2"),
       expand(Sequences({1, 1, 1}), y, {}, "X has 3 sequences, expected 2"),
       expand(Rows(2), Rows(3), {}, "input \"Y\" has 0 LoD levels"),
       expand(two_levels, y, {}, "X has 2 LoD levels, expected none or 1"),
       expand(Rows(2), y, {{"ref_level", 1}}, "ref_level = 1 and Y has 1 LoD levels"),
       expand(Rows(2), y, {{"ref_level", -2}}, "ref_level = -2"),
       expand(Sequences({1, 2}), Sequences({0, 0}), {}, "no sequence of X would be repeated"),
       {"sequence_expand_as", {{"X", {Rows(3)}}, {"Y", {y}}}, {}, "3 and 2 differ"},
       {"sequence_expand_as", {{"X", {Rows(2)}}, {"Y", {two_levels}}}, {}, "has 2 LoD levels"}});
}

TEST_F(SequenceErrors, ConcatWantsSequencesThatFitEachOther) {
  const auto concat = [](std::vector<Array> xs, const std::string& message) {
    return Refused{"sequence_concat", {{"X", std::move(xs)}}, {}, message};
  };
  const Array x = Sequences({2, 1});
  ExpectRefused({concat({x, Sequences({3})}, "X[1] has 1 sequences, expected 2 as X[0]"),
                 concat({x, Sequences({1, 1}, 3)}, "dim 1 of X[1] and of the inputs before"),
                 concat({x, Rows(2)}, "X[1] is float32 [2, 2] and has 0 LoD levels"),
                 concat({x, Ragged(Rows(3), {2}, {2, 1})}, "has 2 LoD levels, expected 1 level"),
                 concat({}, "input slot \"X\" is missing")});
}

TEST_F(SequenceErrors, PadWantsRoomForTheLongest) {
  const auto pad = [](Array x, Array value, AttributeMap attrs, const std::string& message) {
    return Refused{"sequence_pad",
                   {{"X", {std::move(x)}}, {"PadValue", {std::move(value)}}},
                   std::move(attrs),
                   message};
  };
  const Array x = Sequences({3, 1});
  const Array zero = Values({1}, {0});
  ExpectRefused({pad(x, zero, {{"padded_length", 2}}, "a sequence has 3 rows, expected at most"),
                 pad(x, zero, {{"padded_length", 0}}, "expected -1 or a length above 0"),
                 pad(x, Uniform({3}, 2), {}, "PadValue is float32 [3], expected float32 [2]"),
                 pad(x, Vector({0}), {}, "PadValue is int64 [1]"),
                 pad(Rows(3), zero, {}, "input \"X\" has 0 LoD levels")});
}

TEST_F(SequenceErrors, UnpadWantsLengthsThatXHas) {
  const auto unpad = [](Array x, Array lengths, const std::string& message) {
    return Refused{
        "sequence_unpad", {{"X", {std::move(x)}}, {"Length", {std::move(lengths)}}}, {}, message};
  };
  ExpectRefused({unpad(Rows(2, 3), Vector({1, 4}), "sequence 1 has length 4, expected at least 0"),
                 unpad(Rows(2, 3), Vector({-1, 3}), "sequence 0 has length -1"),
                 unpad(Rows(2, 3), Vector({1, 1, 1}), "Length is int64 [3], expected int64 [2]"),
                 unpad(Rows(2, 3), Vector({1, 1}, DType::kInt32), "Length is int32 [2]"),
                 unpad(Uniform({2}, 1), Vector({1, 1}), "X has shape [2], expected"),
                 unpad(Rows(0, 3), Vector({}), "with at least one sequence")});
}

TEST_F(SequenceErrors, UnpadGradientTakesLengthsFromTheLoDOfOutGrad) {
  const Array x = Rows(2, 3);
  const auto grad = [&](Arrays inputs, const std::string& message) {
    inputs["X"] = {x};
    return Refused{"sequence_unpad_grad", std::move(inputs), {}, message};
  };
  ExpectRefused({grad({{"Out@GRAD", {Rows(3, 1)}}}, "input \"Out@GRAD\" has 0 LoD levels"),
                 grad({{"Out@GRAD", {Sequences({1, 1, 1}, 1)}}}, "2 and 3 differ"),
                 grad({{"Out@GRAD", {Sequences({4, 1}, 1)}}}, "sequence 0 has length 4"),
                 grad({{"Out@GRAD", {Rows(3, 1)}}, {"Length", {Vector({1, 1})}}},
                      "Out@GRAD has 3 rows, expected the sum of Length, 2")});
  // As Fluid writes it.
  Op op("sequence_unpad_grad");
  op.SetInput("X", {"x"}).SetInput("Out@GRAD", {"dy"}).SetOutput("X@GRAD", {"dx"});
  const Array gradient = Ragged(Values({3, 1}, {1, 2, 3}), {1, 2});
  PreparedOp prepared(
      registry_, op,
      {{"x", ToTensor(x, DType::kFloat32)}, {"dy", ToTensor(gradient, DType::kFloat32)}});
  prepared.Run();
  EXPECT_EQ(prepared.Outputs().at("dx").ToVector<float>(), (std::vector<float>{1, 0, 0, 2, 3, 0}));
}

TEST_F(SequenceErrors, SliceWantsRowsThatTheSequencesHave) {
  const auto slice = [](Array offset, Array length, const std::string& message) {
    return Refused{"sequence_slice",
                   {{"X", {Sequences({3, 1})}},
                    {"Offset", {std::move(offset)}},
                    {"Length", {std::move(length)}}},
                   {},
                   message};
  };
  ExpectRefused(
      {slice(Column({0, 1}), Column({3, 1}), "Offset[1] is 1 and Length[1] 1, expected rows"),
       slice(Column({-1, 0}), Column({1, 1}), "Offset[0] is -1"),
       slice(Column({0, 0}), Column({1, -1}), "Length[1] -1"),
       slice(Column({4, 0}), Column({0, 0}), "Offset[0] is 4"),
       slice(Vector({0, 0}), Column({1, 1}), "Offset is int64 [2], expected int64 [2, 1]"),
       slice(Column({0, 0}), Column({1}), "Length is int64 [1, 1]")});
}

TEST_F(SequenceErrors, AttentionDecoderWantsWhatItsAttributesNeed) {
  const Arrays all = {{"Input", {Sequences({2, 1}, 6)}},
                      {"Encoded", {Sequences({1, 3}, 4)}},
                      {"Keys", {Rows(4)}},
                      {"Weight", {Rows(2, 6)}},
                      {"ContextWeight", {Rows(4, 6)}},
                      {"ScoreWeight", {Rows(2, 1)}}};
  const auto decoder = [&](const std::string& slot, std::vector<Array> arrays, AttributeMap attrs,
                           const std::string& message) {
    Arrays inputs = all;
    inputs.erase(slot);
    if (!arrays.empty()) inputs[slot] = std::move(arrays);
    return Refused{"attention_decoder", std::move(inputs), std::move(attrs), message};
  };
  ExpectRefused(
      {decoder("ScoreWeight", {}, {}, "ScoreWeight is absent and score is \"additive\", expected"),
       decoder("", {}, {{"score", "dot"}}, "ScoreWeight is there and score is \"dot\", expected"),
       decoder("ContextWeight", {}, {}, "ContextWeight is absent and attends is \"before\""),
       decoder("", {}, {{"attends", "after"}}, "ContextWeight is there and attends is \"after\""),
       decoder("", {}, {{"forget_bias", 1.0f}}, "forget_bias is 1 and cell is \"gru\", expected 0"),
       decoder("C0", {Rows(2)}, {}, "C0 is there and cell is \"gru\""),
       decoder("H0", {Rows(3)}, {}, "H0 is float32 [3, 2], expected float32 [2, 2]"),
       decoder("Keys", {Rows(4, 3)}, {}, "Keys is float32 [4, 3], expected float32 [4, 2]"),
       decoder("Input", {Sequences({2, 1}, 8)}, {}, "Input is float32 [3, 8], expected"),
       decoder("Input", {Sequences({1, 1, 1}, 6)}, {}, "3 and 2 differ"),
       decoder("Weight", {Vector({1}, DType::kFloat32)}, {}, "Weight is [1], expected a matrix")});
}

TEST_F(SequenceErrors, AttentionWantsAQueryForEachSequence) {
  const Arrays all = {{"Query", {Rows(2)}},
                      {"Encoded", {Sequences({1, 3}, 4)}},
                      {"Keys", {Rows(4)}},
                      {"ScoreWeight", {Rows(2, 1)}}};
  const auto attention = [&](const std::string& slot, std::vector<Array> arrays, AttributeMap attrs,
                             const std::string& message) {
    Arrays inputs = all;
    inputs.erase(slot);
    if (!arrays.empty()) inputs[slot] = std::move(arrays);
    return Refused{"sequence_attention", std::move(inputs), std::move(attrs), message};
  };
  ExpectRefused(
      {attention("Query", {Rows(3)}, {}, "the rows of Query and the sequences of Encoded"),
       attention("Query", {Rows(2, 3)}, {}, "Query is float32 [2, 3], expected float32 [2, 2]"),
       attention("Keys", {Rows(3)}, {}, "Keys is float32 [3, 2], expected float32 [4, 2]"),
       attention("Encoded", {Rows(4, 4)}, {}, "input \"Encoded\" has 0 LoD levels"),
       attention("Encoded", {Ragged(Rows(4), {2}, {1, 3})}, {}, "has 2 LoD levels"),
       attention("ScoreWeight", {}, {},
                 "ScoreWeight is absent and score is \"additive\", expected"),
       attention("", {}, {{"score", "dot"}}, "ScoreWeight is there and score is \"dot\", expected"),
       attention("ScoreWeight", {Rows(1)}, {}, "ScoreWeight is float32 [1, 2], expected"),
       attention("", {}, {{"score", "general"}}, "score = \"general\", expected")});
}

TEST_F(SequenceErrors, EraseWantsAColumnOfIds) {
  const Array wide = Ragged(Integers({3, 2}, 1, 0, 9), {1, 2});
  const AttributeMap tokens = {{"tokens", std::vector<int32_t>{1}}};
  ExpectRefused({{"sequence_erase", {{"X", {wide}}}, tokens, "expected [rows, 1]"},
                 {"sequence_erase", {{"X", {Column({1, 2})}}}, tokens, "has 0 LoD levels"},
                 {"sequence_erase", {{"X", {Ragged(Column({1}), {1})}}}, {}, "\"tokens\" is not"}});
}

Array Ids(const Shape& shape, std::vector<double> values) {
  return Values(shape, std::move(values), DType::kInt64);
}

TEST_F(SequenceErrors, WarpctcWantsLabelsThatAreClassesAndNoBlanks) {
  const auto ragged = [](Array label, AttributeMap attrs, const std::string& message) {
    return Refused{"warpctc",
                   {{"Logits", {Sequences({3, 2}, 4)}}, {"Label", {std::move(label)}}},
                   std::move(attrs),
                   message};
  };
  const Array fits = Ragged(Column({1, 2, 1}), {2, 1});
  ExpectRefused({
      ragged(Ragged(Column({1, 2, 4}), {2, 1}), {},
             "warpctc: Label[2] = 4, expected a class in [0, 4) other than blank = 0"),
      ragged(Ragged(Column({1, -1, 4}), {2, 1}), {}, "Label[1] = -1"),
      ragged(fits, {{"blank", 2}}, "Label[1] = 2, expected a class in [0, 4) other than blank = 2"),
      ragged(fits, {{"blank", 4}}, "blank = 4, expected a class in [0, 4)"),
      ragged(fits, {{"blank", -1}}, "blank = -1"),
      ragged(Ragged(Column({1, 2, 1}), {1, 1, 1}), {}, "sequences of Logits and Label"),
      ragged(Ragged(Rows(3, 1), {2, 1}), {}, "Label is float32, expected int32 or int64"),
      ragged(Column({1, 2, 1}), {}, "Label"),
      {"warpctc", {{"Logits", {Rows(5, 4)}}, {"Label", {fits}}}, {}, "Logits"},
  });
}

TEST_F(SequenceErrors, WarpctcWantsLengthsWithinThePadding) {
  const auto padded = [](std::vector<double> steps, std::vector<double> labels,
                         const std::string& message) {
    return Refused{"warpctc",
                   {{"Logits", {Uniform({3, 2, 4}, 1)}},
                    {"Label", {Ids({2, 2}, {1, 2, 3, 9})}},
                    {"LogitsLength", {Vector(std::move(steps))}},
                    {"LabelLength", {Vector(std::move(labels))}}},
                   {},
                   message};
  };
  Refused one_length = padded({3, 3}, {1, 1}, "only one of LogitsLength and LabelLength is there");
  one_length.inputs.erase("LabelLength");
  ExpectRefused({
      padded({3, 4}, {2, 1}, "warpctc: LogitsLength[1] = 4, expected 0 to dim 0 of Logits, 3"),
      padded({-1, 3}, {2, 1}, "LogitsLength[0] = -1"),
      padded({3, 3}, {2, 3}, "warpctc: LabelLength[1] = 3, expected 0 to dim 1 of Label, 2"),
      padded({3, 3}, {2, -5}, "LabelLength[1] = -5"),
      padded({3, 3}, {2, 2}, "Label[3] = 9, expected a class in [0, 4)"),
      padded({3, 3, 3}, {2, 1}, "LogitsLength"),
      std::move(one_length),
  });
  // What lies behind the labels doesn't count.
  Run(padded({3, 0}, {2, 1}, ""));
}

TEST_F(SequenceErrors, CtcAlignWantsLengthsWithinThePadding) {
  const auto padded = [](std::vector<double> lengths, const std::string& message) {
    return Refused{"ctc_align",
                   {{"Input", {Ids({2, 3}, {1, 2, 0, 0, 1, 1})}},
                    {"InputLength", {Column(std::move(lengths))}}},
                   {},
                   message};
  };
  ExpectRefused({
      padded({3, 4}, "ctc_align: InputLength[1] = 4, expected 0 to dim 1 of Input, 3"),
      padded({-1, 3}, "InputLength[0] = -1"),
      padded({1, 1, 1}, "InputLength"),
      {"ctc_align", {{"Input", {Ids({2, 3}, {1, 2, 0, 0, 1, 1})}}}, {}, "expected [rows, 1]"},
  });
}

TEST_F(SequenceErrors, EditDistanceWantsPairsAndNoEmptyDivisor) {
  const auto ragged = [](Array hyps, Array refs, AttributeMap attrs, const std::string& message) {
    return Refused{"edit_distance",
                   {{"Hyps", {std::move(hyps)}}, {"Refs", {std::move(refs)}}},
                   std::move(attrs),
                   message};
  };
  const Array two = Ragged(Column({1, 2, 3}), {2, 1});
  Refused padded = ragged(Ids({2, 2}, {1, 2, 3, 4}), Ids({2, 1}, {1, 2}), {},
                          "edit_distance: RefsLength[1] = 2, expected 0 to dim 1 of Refs, 1");
  padded.inputs["HypsLength"] = {Vector({2, 1})};
  padded.inputs["RefsLength"] = {Vector({1, 2})};
  Refused one_length = padded;
  one_length.inputs.erase("HypsLength");
  one_length.message = "only one of HypsLength and RefsLength is there";
  ExpectRefused({
      ragged(two, Ragged(Column({1, 2}), {2, 0}), {{"normalized", true}},
             "edit_distance: sequence 1 of Refs has no ids"),
      ragged(two, Ragged(Column({1, 2}), {2}), {}, "sequences of Hyps and Refs"),
      ragged(two, Ragged(Vector({1, 2}), {1, 1}), {}, "Refs is of shape [2], expected [rows, 1]"),
      ragged(two, Ragged(Values({2, 1}, {1, 2}, DType::kInt32), {1, 1}), {}, "Refs is int32"),
      std::move(padded),
      std::move(one_length),
  });
}

TEST_F(SequenceErrors, ScatterWantsElementsThatXHas) {
  const auto scatter = [](Array ids, Array updates, const std::string& message) {
    return Refused{
        "sequence_scatter",
        {{"X", {Rows(2, 3)}}, {"Ids", {std::move(ids)}}, {"Updates", {std::move(updates)}}},
        {},
        message};
  };
  const Array updates = Sequences({1, 2}, 1);
  const Array ids = Ragged(Column({0, 1, 2}), {1, 2});
  ExpectRefused(
      {scatter(Ragged(Column({0, 3, 1}), {1, 2}), updates, "Ids[1] = 3, expected an element"),
       scatter(Ragged(Column({0, 1, -1}), {1, 2}), updates, "Ids[2] = -1"),
       scatter(Ragged(Column({0, 1, 2}), {1, 1, 1}), Sequences({1, 1, 1}, 1),
               "Ids has 3 sequences, expected at most one for each row of X, which has 2"),
       scatter(ids, Sequences({2, 1}, 1), "Updates has the LoD [0, 2, 3], expected that of Ids"),
       scatter(ids, Sequences({1, 1}, 1), "3 and 2 differ"),
       scatter(ids, Sequences({1, 2}, 2), "expected one number in each row"),
       scatter(ids, Rows(3, 1), "input \"Updates\" has 0 LoD levels")});
}

TEST_F(SequenceErrors, RnnWantsAsManyTensorsAsItsLayersHave) {
  const Array state = Uniform({1, 3, 5}, 1);
  const std::vector<Array> weights = {Uniform({5, 4}, 1), Uniform({5, 5}, 1), Uniform({5}, 1),
                                      Uniform({5}, 1)};
  const Arrays inputs = {
      {"Input", {Uniform({2, 3, 4}, 1)}}, {"PreState", {state}}, {"WeightList", weights}};
  const auto rnn = [&](Arrays changed, const std::string& message,
                       std::map<std::string, size_t> output_counts = {}) {
    changed.insert(inputs.begin(), inputs.end());
    return Refused{"rnn", std::move(changed), {{"hidden_size", 5}}, message, output_counts};
  };
  const auto grad = [&](Arrays changed, const std::string& message,
                        std::map<std::string, size_t> output_counts = {}) {
    const Array out = Uniform({2, 3, 5}, 1);
    changed.insert({{"Reserve", {Uniform({2, 3, 0}, 1)}}, {"Out", {out}}, {"Out@GRAD", {out}}});
    Refused refused = rnn(std::move(changed), message, std::move(output_counts));
    refused.type = "rnn_grad";
    return refused;
  };
  ExpectRefused(
      {rnn({{"WeightList", {weights[0], weights[1]}}}, "WeightList has 2 tensors, expected 4"),
       rnn({{"PreState", {state, state}}}, "PreState has 2 tensors, expected 1"),
       rnn({}, "State has 2 tensors, expected 1", {{"State", 2}}),
       grad({{"State@GRAD", {state, state}}}, "rnn_grad: State@GRAD has 2 tensors, expected 1"),
       grad({}, "output \"WeightList@GRAD\", variable \"out_WeightList@GRAD4\"",
            {{"WeightList@GRAD", 5}}),
       grad({}, "output \"PreState@GRAD\", variable \"out_PreState@GRAD1\"",
            {{"PreState@GRAD", 2}})});
}

TEST_F(SequenceErrors, CrfWantsTagsOfItsTransitions) {
  const Arrays ragged = {{"Emission", {Sequences({1, 2}, 3)}},
                         {"Transition", {Rows(5, 3)}},
                         {"Label", {Ragged(Column({0, 2, 1}), {1, 2})}}};
  const Arrays padded = {{"Emission", {Uniform({2, 2, 3}, 1)}},
                         {"Transition", {Rows(5, 3)}},
                         {"Label", {Values({2, 2}, {0, 1, 2, 9}, DType::kInt64)}},
                         {"Length", {Vector({2, 1})}}};
  const auto changed = [](const std::string& type, Arrays inputs, const std::string& slot,
                          Array array, const std::string& message) {
    inputs[slot] = {std::move(array)};
    return Refused{type, std::move(inputs), {}, message};
  };
  const auto crf = [&](const Arrays& inputs, const std::string& slot, Array array,
                       const std::string& message) {
    return changed("linear_chain_crf", inputs, slot, std::move(array), message);
  };
  ExpectRefused(
      {crf(ragged, "Label", Ragged(Column({0, 2, 3}), {1, 2}),
           "row 2 of Label is 3, expected a tag in [0, 3)"),
       crf(ragged, "Label", Ragged(Column({-1, 2, 1}), {1, 2}), "row 0 of Label is -1"),
       crf(ragged, "Label", Ragged(Column({0, 2, 1}), {2, 1}),
           "Emission has the LoD [0, 1, 3], expected that of Label, [0, 2, 3]"),
       crf(ragged, "Label", Column({0, 2, 1}), "input \"Label\" has 0 LoD levels"),
       crf(ragged, "Label", Sequences({1, 2}, 1), "Label is float32 [3, 1], expected int64 [3] or"),
       crf(ragged, "Transition", Rows(4, 3), "Transition is float32 [4, 3], expected"),
       crf(ragged, "Emission", Uniform({3, 1, 3}, 1), "expected [rows, tags]"),
       crf(ragged, "Emission", Sequences({1, 2}, 0), "expected at least one tag"),
       crf(padded, "Length", Vector({3, 1}),
           "sequence 0 has length 3, expected at least 0 and at most the padded length, 2"),
       crf(padded, "Length", Vector({2, -1}), "sequence 1 has length -1"),
       crf(padded, "Length", Vector({2, 2}), "row 3 of Label is 9"),
       crf(padded, "Length", Vector({2, 1, 0}), "Length is int64 [3], expected int64 [2] or"),
       crf(padded, "Length", Vector({2, 1}, DType::kInt32), "Length is int32"),
       crf(padded, "Emission", Sequences({1, 2}, 3), "expected [sequences, length, tags]"),
       changed("crf_decoding", padded, "Length", Vector({3, 1}), "sequence 0 has length 3"),
       changed("crf_decoding", ragged, "Emission", Rows(3, 3), "\"Emission\" has 0 LoD levels"),
       changed("crf_decoding", ragged, "Label", Column({0, 2}), "Label is int64 [2, 1]")});
}

TEST_F(SequenceErrors, ChunkEvalWantsTagsOfItsScheme) {
  const auto eval = [](Array inference, Array label, const std::string& message,
                       AttributeMap attrs = {}) {
    attrs.insert({"num_chunk_types", int32_t{1}});
    return Refused{"chunk_eval",
                   {{"Inference", {std::move(inference)}}, {"Label", {std::move(label)}}},
                   std::move(attrs),
                   message};
  };
  const Array tags = Ragged(Column({0, 1, 2}), {1, 2});
  ExpectRefused(
      {eval(Ragged(Column({0, 3, 2}), {1, 2}), tags, "row 1 of Inference is 3, expected a tag in"),
       eval(tags, Ragged(Column({0, 1, -1}), {1, 2}), "row 2 of Label is -1"),
       eval(Ragged(Column({0, 1, 2}), {2, 1}), tags, "Inference has the LoD [0, 2, 3], expected"),
       eval(Column({0, 1, 2}), tags, "input \"Inference\" has 0 LoD levels"),
       eval(tags, tags, "chunk_scheme = \"BIO\", expected", {{"chunk_scheme", std::string("BIO")}}),
       eval(tags, tags, "num_chunk_types = 0, expected at least 1", {{"num_chunk_types", 0}})});
}

TEST_F(SequenceErrors, LodResetWantsOffsetsOfTheRows) {
  const auto reset = [](Arrays inputs, const std::vector<int32_t>& target, bool append,
                        const std::string& message) {
    return Refused{
        "lod_reset", std::move(inputs), {{"target_lod", target}, {"append", append}}, message};
  };
  const Arrays x = {{"X", {Rows(3)}}};
  const Arrays ragged = {{"X", {Sequences({2, 1})}}};
  const auto with_y = [&](Array y) { return Arrays{{"X", {Rows(3)}}, {"Y", {std::move(y)}}}; };
  const auto offsets = [](std::vector<double> values) {
    return Vector(std::move(values), DType::kInt32);
  };
  ExpectRefused({reset(x, {}, false, "target_lod = [], expected at least 2 ascending offsets"),
                 reset(x, {0, 2}, false, "the last the rows of X, 3"),
                 reset(x, {1, 3}, false, "target_lod = [1, 3]"),
                 reset(x, {0, 2, 1, 3}, false, "target_lod = [0, 2, 1, 3]"),
                 reset(x, {0, -1, 3}, false, "target_lod has the offset -1"),
                 reset(ragged, {0, 2, 3}, true,
                       "the lowest level of X ends at 3 and the one to append has 2 sequences"),
                 reset(with_y(Sequences({2, 2})), {}, false, "3 and 4 differ"),
                 reset(with_y(Vector({0, 3})), {}, false, "Y is int64 and not ragged"),
                 reset(with_y(offsets({0, 4})), {}, false, "the data of Y = [0, 4]"),
                 reset(with_y(offsets({0, -3, 3})), {}, false, "the data of Y has the offset -3"),
                 reset({{"X", {Uniform(Shape(), 1)}}}, {0, 1}, false, "X has rank 0")});
}

TEST_F(SequenceErrors, Im2SequenceWantsWindowsInTheImage) {
  using Sizes = std::vector<int32_t>;
  const auto windows = [](const Shape& shape, AttributeMap attrs, const std::string& message) {
    return Refused{"im2sequence", {{"X", {Uniform(shape, 1)}}}, std::move(attrs), message};
  };
  const Sizes two = {2, 2};
  ExpectRefused(
      {windows({1, 1, 3, 3}, {{"kernels", Sizes{4, 1}}}, "expected at least the 4 of a window"),
       windows({1, 1, 3, 3}, {{"kernels", Sizes{2}}}, "kernels = [2], expected 2 numbers"),
       windows({1, 1, 3, 3}, {{"kernels", Sizes{0, 1}}}, "kernels = [0, 1]"),
       windows({1, 1, 3, 3}, {{"kernels", two}, {"strides", Sizes{1, 0}}}, "strides = [1, 0]"),
       windows({1, 1, 3, 3}, {{"kernels", two}, {"paddings", two}}, "expected 4 numbers"),
       windows({1, 3, 3}, {{"kernels", two}}, "X has shape [1, 3, 3], expected"),
       windows({0, 1, 3, 3}, {{"kernels", two}}, "none of them 0")});
}

}  // namespace
}  // namespace skiff::harness
