// What ops that update lists of parameters refuse, and what they say about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "operators/optimizer/optimizer_ops.h"
#include "tests/harness/case_op.h"
#include "tests/harness/prepared_op.h"

namespace skiff::harness {
namespace {

using ::testing::HasSubstr;

bool IsScalar(const std::string& slot) { return slot.find("Pow") != std::string::npos; }

// What the op makes of lists of two parameters, with every slot that has one argument a parameter.
OpCase CaseOf(const OpDef& def) {
  OpCase result{.name = "lists", .type = def.type};
  for (const std::string& slot : def.update->lists) {
    for (const Shape& shape : {Shape{2, 3}, Shape{4}}) {
      result.inputs[slot].push_back(Uniform(IsScalar(slot) ? Shape{1} : shape, 1, 0.25, 0.75));
    }
  }
  result.inputs["LearningRate"] = {Values({1}, {0.5})};
  for (const auto& [input, output] : def.in_place) result.outputs.emplace_back(output, 2);
  for (const AttrDef& attr : def.attrs) {
    if (!attr.default_value.has_value()) result.attrs[attr.name] = 0.5f;
  }
  return result;
}

class UpdateError : public testing::Test {
 protected:
  UpdateError() { RegisterOptimizerOps(registry_); }

  // The message of the Error that the case makes; empty if it makes none.
  std::string ErrorOf(const OpCase& op_case) const {
    try {
      const Op op = MakeOp(op_case);
      CheckOp(registry_.Get(op.type), op);
      PreparedOp prepared(registry_, op, MakeInputs(op_case, DType::kFloat32));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  // The same of the lists of an op that `change` is applied to.
  std::string ErrorOf(const std::string& type, const std::function<void(OpCase&)>& change) const {
    OpCase changed = CaseOf(registry_.Get(type));
    change(changed);
    return ErrorOf(changed);
  }

  // The update ops of optimizers: not those that add up gradients or keep averages.
  std::vector<std::string> Optimizers() const {
    std::vector<std::string> types = registry_.Types();
    std::erase_if(types, [this](const std::string& type) {
      return registry_.Get(type).FindInput("LearningRate") == nullptr;
    });
    return types;
  }

  // Every one of them, and each of its slots with one argument a parameter.
  void ForEachList(const std::function<void(const OpDef&, const std::string& slot)>& body) const {
    for (const std::string& type : Optimizers()) {
      const OpDef& def = registry_.Get(type);
      for (const std::string& slot : def.update->lists) {
        SCOPED_TRACE(type + " " + slot);
        body(def, slot);
      }
    }
  }

  OpRegistry registry_;
};

TEST_F(UpdateError, ListsOfAllOpsAreTaken) {
  EXPECT_EQ(Optimizers().size(), 14u);
  for (const std::string& type : Optimizers()) {
    EXPECT_EQ(ErrorOf(CaseOf(registry_.Get(type))), "") << type;
  }
}

TEST_F(UpdateError, NamesAListOfAnotherLength) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    if (slot == "Param") return;
    EXPECT_THAT(ErrorOf(def.type, [&](OpCase& made) { made.inputs[slot].pop_back(); }),
                HasSubstr(def.type + ": " + slot + " has 1 arguments, expected 2 as Param"));
  });
  EXPECT_THAT(
      ErrorOf("sgd",
              [](OpCase& made) { made.inputs["LearningRate"].resize(3, Values({1}, {0.5})); }),
      HasSubstr("sgd: LearningRate has 3 arguments, expected 2 as Param, or one for all"));
}

TEST_F(UpdateError, NamesTheArgumentOfAnotherShape) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    if (slot == "Param") return;
    const std::string message =
        IsScalar(slot) ? "[1] has shape [5], expected one element" : "[1] is float32 [5], expected";
    EXPECT_THAT(ErrorOf(def.type, [&](OpCase& made) { made.inputs[slot][1] = Uniform({5}, 1); }),
                HasSubstr(def.type + ": " + slot + message));
  });
}

TEST_F(UpdateError, NamesTheArgumentOfAnotherDtype) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    const auto change = [&](OpCase& made) {
      const Array& given = made.inputs[slot][1];
      made.inputs[slot][1] = Integers(given.shape, 1, 0, 9);
    };
    EXPECT_THAT(ErrorOf(def.type, change), HasSubstr(def.type + ": " + slot + "[1] is int64"));
  });
}

TEST_F(UpdateError, ASlotOfOneArgumentIsNamedWithoutAnIndex) {
  const auto change = [](OpCase& made) {
    for (auto& [slot, arguments] : made.inputs) arguments.resize(1, Values({1}, {0.5}));
    for (auto& [slot, count] : made.outputs) count = 1;
    made.inputs["Grad"][0] = Uniform({5}, 1);
  };
  EXPECT_THAT(ErrorOf("sgd", change),
              HasSubstr("sgd: Grad is float32 [5], expected float32 [2, 3]"));
}

TEST_F(UpdateError, NamesTheOutputThatIsMissing) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    for (const auto& [input, output] : def.in_place) {
      if (input != slot || def.FindOutput(output)->dispensable) continue;
      const auto change = [&, name = output](OpCase& made) {
        for (auto& [made_output, count] : made.outputs) count = made_output == name ? 1 : 2;
      };
      EXPECT_THAT(ErrorOf(def.type, change), HasSubstr(def.type + ": output \"" + output +
                                                       "\" has 1 arguments, expected 2 as Param"));
    }
  });
}

TEST_F(UpdateError, NamesAListOfSettingsOfAnotherLength) {
  const auto decays = [](std::vector<float> values) {
    return [values](OpCase& made) { made.attrs["lars_weight_decay"] = values; };
  };
  EXPECT_EQ(ErrorOf("lars_momentum", decays({0.5f, 0.25f})), "");
  EXPECT_THAT(ErrorOf("lars_momentum", decays({0.5f, 0.25f, 0.125f})),
              HasSubstr("lars_momentum: attribute lars_weight_decay has 3 entries, expected 1 for "
                        "all or 2 as Param has"));
  EXPECT_THAT(ErrorOf("lars_momentum", decays({})),
              HasSubstr("lars_momentum: attribute lars_weight_decay has 0 entries"));
  EXPECT_THAT(ErrorOf("merged_momentum",
                      [](OpCase& made) {
                        made.attrs["regularization_coeff"] = std::vector<float>(3, 0.5f);
                      }),
              HasSubstr("merged_momentum: attribute regularization_coeff has 3 entries"));
}

TEST_F(UpdateError, NamesThePoliciesOfLars) {
  const auto change = [](OpCase& made) { made.attrs["lars_policy"] = std::string("none"); };
  EXPECT_THAT(ErrorOf("lars_momentum", change), HasSubstr("lars_policy"));
  EXPECT_THAT(ErrorOf("lars_momentum", change), HasSubstr("decay_and_norms"));
}

}  // namespace
}  // namespace skiff::harness
