// Update ops that update only a part of their parameters, as one of several ranks: all parts
// together have the bits of the whole update, wherever the parts begin.
#include "framework/op/update_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "memory/places.h"
#include "operators/optimizer/optimizer_ops.h"
#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"
#include "tests/operators/optimizer/update_list_case.h"

namespace skiff::harness {
namespace {

using ::testing::HasSubstr;

// Fewer elements than a vector has, none, and enough for several threads.
const std::vector<int64_t> kCounts = {35, 0, 16, 30'011, 1, 9, 40};

// A part, as an attribute of the op gives it.
struct Part {
  std::string attr;
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns parts that together are all elements, or all parameters.
std::vector<Part> PartsFor(const OpDef& def) {
  const bool is_in_elements = def.FindAttr(kPartAttr) != nullptr;
  const std::vector<int64_t> cuts = is_in_elements
                                        ? std::vector<int64_t>{0, 13, 35, 47, 8'000, 8'000, 30'112}
                                        : std::vector<int64_t>{0, 1, 1, 4, 7};
  std::vector<Part> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    parts.push_back({is_in_elements ? kPartAttr : kParameterPartAttr, cuts[i], cuts[i + 1]});
  }
  return parts;
}

// The slots of a case that can be shards: master weights, and states of the parameters' shapes.
std::vector<std::string> SlotsToShard(const OpDef& def, const OpCase& op_case) {
  std::vector<std::string> slots;
  for (const StaticText slot : def.update->lists) {
    const bool is_array = slot != "Param" && slot != "Grad" && !IsScalarSlot(def, slot);
    if (is_array && op_case.inputs.contains(slot)) slots.emplace_back(slot);
  }
  return slots;
}

std::string OutputOf(const OpDef& def, const std::string& slot) {
  for (const auto& [input, output] : def.in_place) {
    if (input == slot) return std::string(output);
  }
  return "";
}

// Returns the bytes of elements [begin, begin + count).
std::string BytesOf(const Tensor& tensor, int64_t begin, int64_t count) {
  const int64_t size = SizeOf(tensor.dtype());
  return {static_cast<const char*>(tensor.raw_data()) + begin * size,
          static_cast<size_t>(count * size)};
}

// An op and its inputs, of which one rank updates a part.
class PartialUpdate {
 public:
  PartialUpdate(const OpRegistry& registry, const OpCase& op_case, const Part& part,
                bool has_shards)
      : registry_(registry), def_(registry.Get(op_case.type)), op_(MakeOp(op_case)) {
    inputs_ = MakeInputs(op_case, DType::kFloat32);
    op_.SetAttr(part.attr, std::vector<int64_t>{part.begin, part.end});
    pieces_ = PiecesOf(op_, kCounts);
    if (!has_shards) return;
    sharded_ = SlotsToShard(def_, op_case);
    op_.SetAttr(kShardedAttr, sharded_);
    for (const std::string& slot : sharded_) MakeShard(slot);
  }

  bool IsSharded(const std::string& slot) const { return std::ranges::count(sharded_, slot) > 0; }
  const std::vector<PartPiece>& pieces() const { return pieces_; }
  const Tensor& input(const std::string& name) const { return inputs_.at(name); }

  NamedTensors Run(bool in_place) const {
    OpSettings settings;
    for (const auto& [input, output] : def_.in_place) {
      for (size_t i = 0; in_place && i < op_.Input(input).size(); ++i) {
        settings.in_place.emplace_back(op_.Input(input)[i], op_.Output(output)[i]);
      }
    }
    PreparedOp prepared(registry_, op_, inputs_, settings);
    prepared.Load(inputs_, 0xFF);
    prepared.Run();
    EXPECT_THAT(prepared.Faults(), ::testing::IsEmpty());
    return prepared.Outputs();
  }

 private:
  void MakeShard(const std::string& slot) {
    Tensor shard(Shape{ShardElements(pieces_)}, DType::kFloat32);
    std::memset(shard.raw_data(), 0, static_cast<size_t>(shard.byte_count()));
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Tensor whole = inputs_.at(VariableName(slot, i));
      const std::string bytes = BytesOf(whole, pieces_[i].begin, pieces_[i].count);
      std::memcpy(shard.data<float>() + pieces_[i].place, bytes.data(), bytes.size());
      inputs_.erase(VariableName(slot, i));
    }
    inputs_[VariableName(slot, 0)] = shard;
    const std::string output = OutputOf(def_, slot);
    op_.SetInput(slot, {VariableName(slot, 0)}).SetOutput(output, {VariableName(output, 0)});
  }

  const OpRegistry& registry_;
  const OpDef& def_;
  Op op_;
  NamedTensors inputs_;
  std::vector<PartPiece> pieces_;
  std::vector<std::string> sharded_;
};

class UpdatePart : public ::testing::Test {
 protected:
  UpdatePart() { RegisterOptimizerOps(registry_); }

  // Returns the types of ops that can update a part.
  std::vector<std::string> Types() const {
    std::vector<std::string> types = registry_.Types();
    std::erase_if(types, [this](const std::string& type) {
      return registry_.Get(type).FindAttr(kShardedAttr) == nullptr;
    });
    return types;
  }

  OpCase CaseOf(const std::string& type, UpdatePrecision precision) const {
    return UpdateListCase(registry_.Get(type), ListedParameters(kCounts), precision);
  }

  NamedTensors RunWhole(const OpCase& op_case) const {
    const Op op = MakeOp(op_case);
    const NamedTensors inputs = MakeInputs(op_case, DType::kFloat32);
    PreparedOp prepared(registry_, op, inputs);
    prepared.Load(inputs, 0xFF);
    prepared.Run();
    return prepared.Outputs();
  }

  // Compares what the update of a part gives with the whole update. Other elements are as before.
  void Expect(const PartialUpdate& update, const NamedTensors& found, const NamedTensors& whole,
              const std::string& type) const {
    const OpDef& def = registry_.Get(type);
    for (const auto& [input, output] : def.in_place) {
      for (size_t i = 0; i < kCounts.size(); ++i) {
        SCOPED_TRACE(StrCat(output, " ", i));
        const std::string name = VariableName(output, i);
        if (!whole.contains(name)) continue;
        if (IsScalarSlot(def, std::string(input))) {
          EXPECT_TRUE(SameBits(found.at(name), whole.at(name)));
          continue;
        }
        const auto [begin, count, place] = update.pieces()[i];
        const std::string expected = BytesOf(whole.at(name), begin, count);
        if (update.IsSharded(std::string(input))) {
          EXPECT_EQ(BytesOf(found.at(VariableName(output, 0)), place, count), expected);
          continue;
        }
        EXPECT_EQ(BytesOf(found.at(name), begin, count), expected);
        const Tensor& before = update.input(VariableName(std::string(input), i));
        const int64_t end = begin + count;
        EXPECT_EQ(BytesOf(found.at(name), 0, begin), BytesOf(before, 0, begin));
        EXPECT_EQ(BytesOf(found.at(name), end, kCounts[i] - end),
                  BytesOf(before, end, kCounts[i] - end));
      }
    }
  }

  // Returns the message of the Error that the op throws, or "".
  std::string ErrorOf(const Op& op, const OpCase& op_case) const {
    try {
      CheckOp(registry_.Get(op.type), op);
      PreparedOp prepared(registry_, op, MakeInputs(op_case, DType::kFloat32));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  OpRegistry registry_;
};

TEST_F(UpdatePart, HasTheBitsOfTheWholeUpdate) {
  for (const std::string& type : Types()) {
    for (const UpdatePrecision precision : UpdatePrecisions()) {
      const OpCase op_case = CaseOf(type, precision);
      const NamedTensors whole = RunWhole(op_case);
      for (const Part& part : PartsFor(registry_.Get(type))) {
        for (const bool has_shards : {true, false}) {
          SCOPED_TRACE(StrCat(type, " ", precision.param, " ", precision.grad, " ", part.begin,
                              " to ", part.end, has_shards ? " in shards" : ""));
          const PartialUpdate update(registry_, op_case, part, has_shards);
          for (const bool in_place : {true, false}) {
            Expect(update, update.Run(in_place), whole, type);
          }
        }
      }
    }
  }
}

TEST_F(UpdatePart, ChangesNothingIfTheUpdateIsSkipped) {
  for (const std::string& type : Types()) {
    SCOPED_TRACE(type);
    OpCase op_case = CaseOf(type, {});
    op_case.inputs["SkipUpdate"] = {Values({1}, {1}, DType::kBool)};
    const NamedTensors whole = RunWhole(op_case);
    for (const Part& part : PartsFor(registry_.Get(type))) {
      const PartialUpdate update(registry_, op_case, part, true);
      Expect(update, update.Run(false), whole, type);
    }
  }
}

TEST_F(UpdatePart, IsARangeOfTheElements) {
  const OpCase op_case = CaseOf("adam", {});
  for (const std::vector<int64_t>& part :
       {std::vector<int64_t>{0}, {-1, 5}, {5, 4}, {0, 30'113}, {1, 2, 3}}) {
    Op op = MakeOp(op_case);
    op.SetAttr(kPartAttr, part);
    EXPECT_THAT(ErrorOf(op, op_case), HasSubstr("expected a begin and an end within [0, 30112]"));
  }
}

TEST_F(UpdatePart, IsOfWholeParametersWhereTheirNormsDecide) {
  const OpCase op_case = CaseOf("lamb", {});
  Op op = MakeOp(op_case);
  op.SetAttr(kParameterPartAttr, std::vector<int64_t>{0, 8});
  EXPECT_THAT(ErrorOf(op, op_case), HasSubstr("expected a begin and an end within [0, 7]"));
  for (const std::string& type : Types()) {
    const OpDef& def = registry_.Get(type);
    EXPECT_NE(def.FindAttr(kPartAttr) == nullptr, def.FindAttr(kParameterPartAttr) == nullptr);
  }
}

TEST_F(UpdatePart, TakesShardsOfStatesAlone) {
  const OpCase op_case = CaseOf("adam", {});
  Op op = MakeOp(op_case);
  op.SetAttr(kShardedAttr, std::vector<std::string>{"Moment1"});
  EXPECT_THAT(ErrorOf(op, op_case), HasSubstr("no attribute gives the part"));
  op.SetAttr(kPartAttr, std::vector<int64_t>{0, 100});
  EXPECT_THAT(ErrorOf(op, op_case), HasSubstr("Moment1 has 7 arguments, expected one, a shard"));
  op.SetInput("Moment1", {VariableName("Moment1", 0)});
  EXPECT_THAT(ErrorOf(op, op_case), HasSubstr("Moment1 is float32 [35], expected a shard"));
  op.SetAttr(kShardedAttr, std::vector<std::string>{"Beta1Pow"});
  EXPECT_THAT(ErrorOf(op, op_case), HasSubstr("expected MasterParam or a state"));
}

}  // namespace
}  // namespace skiff::harness
