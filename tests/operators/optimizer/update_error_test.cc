// The arguments that ops on lists of parameters refuse, and their messages.
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

Array In(DType dtype, const Array& array) { return Values(array.shape, array.values, dtype); }

// Returns a case of the op with lists of two parameters and one argument per parameter in every
// list slot: float32, or bfloat16 with master weights.
OpCase CaseOf(const OpDef& def, bool has_masters = true) {
  OpCase result{.name = "lists", .type = def.type};
  for (const StaticText slot : def.update->lists) {
    if (slot == "MasterParam" && !has_masters) continue;
    for (const Shape& shape : {Shape{2, 3}, Shape{4}}) {
      result.inputs[slot].push_back(Uniform(IsScalar(slot) ? Shape{1} : shape, 1, 0.25, 0.75));
    }
  }
  for (Array& param : result.inputs["Param"]) {
    if (has_masters) param = In(DType::kBFloat16, param);
  }
  result.attrs["multi_precision"] = has_masters;
  result.inputs["LearningRate"] = {Values({1}, {0.5})};
  for (const auto& [input, output] : def.in_place) {
    if (result.inputs.contains(input)) result.outputs.emplace_back(output, 2);
  }
  for (const AttrDef& attr : def.attrs) {
    if (!attr.default_value.has_value()) result.attrs[attr.name] = 0.5f;
  }
  return result;
}

class UpdateError : public testing::Test {
 protected:
  UpdateError() { RegisterOptimizerOps(registry_); }

  // Returns the message of the Error that the case throws, or nothing if it throws none.
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

  // Returns the same after `change` has changed the lists of an op.
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

  // Calls the function for every such op and each of its slots with one argument per parameter.
  void ForEachList(const std::function<void(const OpDef&, const std::string& slot)>& body) const {
    for (const std::string& type : Optimizers()) {
      const OpDef& def = registry_.Get(type);
      for (const StaticText slot : def.update->lists) {
        SCOPED_TRACE(StrCat(type, " ", slot));
        body(def, slot);
      }
    }
  }

  OpRegistry registry_;
};

TEST_F(UpdateError, ListsOfAllOpsAreTaken) {
  EXPECT_EQ(Optimizers().size(), 14u);
  for (const std::string& type : Optimizers()) {
    for (const bool has_masters : {false, true}) {
      EXPECT_EQ(ErrorOf(CaseOf(registry_.Get(type), has_masters)), "") << type << has_masters;
    }
  }
}

TEST_F(UpdateError, NamesAListOfAnotherLength) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    if (slot == "Param") return;
    EXPECT_THAT(ErrorOf(def.type, [&](OpCase& made) { made.inputs[slot].pop_back(); }),
                HasSubstr(StrCat(def.type, ": ", slot, " has 1 arguments, expected 2 as Param")));
  });
  EXPECT_THAT(
      ErrorOf("sgd",
              [](OpCase& made) { made.inputs["LearningRate"].resize(3, Values({1}, {0.5})); }),
      HasSubstr("sgd: LearningRate has 3 arguments, expected 2 as Param, or one for all"));
}

TEST_F(UpdateError, NamesTheArgumentOfAnotherShape) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    if (slot == "Param") return;
    const std::string message = IsScalar(slot) ? "[1] has shape [5], expected one element"
                                               : "[1] is float32 [5], expected float32 [4]";
    EXPECT_THAT(ErrorOf(def.type, [&](OpCase& made) { made.inputs[slot][1] = Uniform({5}, 1); }),
                HasSubstr(StrCat(def.type, ": ", slot, message)));
  });
}

TEST_F(UpdateError, NamesTheArgumentOfAnotherDtype) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    const auto change = [&](OpCase& made) {
      const Array& given = made.inputs[slot][1];
      made.inputs[slot][1] = Integers(given.shape, 1, 0, 9);
    };
    EXPECT_THAT(ErrorOf(def.type, change), HasSubstr(StrCat(def.type, ": ", slot, "[1] is int64")));
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

TEST_F(UpdateError, TellsWhoHasMasterWeights) {
  for (const std::string& type : Optimizers()) {
    EXPECT_THAT(ErrorOf(type, [](OpCase& made) { made.attrs.erase("multi_precision"); }),
                HasSubstr(type + ": multi_precision = false and Param is bfloat16, expected "
                                 "multi_precision = true, with float32 weights in MasterParam"));
    EXPECT_THAT(ErrorOf(type,
                        [](OpCase& made) {
                          for (Array& param : made.inputs["Param"]) param.fixed_dtype = false;
                        }),
                HasSubstr(type + ": multi_precision = true and Param is float32, expected float16 "
                                 "or bfloat16"));
    OpCase unasked = CaseOf(registry_.Get(type), /*has_masters=*/false);
    unasked.inputs["MasterParam"] = unasked.inputs["Param"];
    EXPECT_THAT(ErrorOf(unasked),
                HasSubstr(type + ": multi_precision = false and MasterParam is connected"));
  }
}

TEST_F(UpdateError, NamesMasterWeightsThatAreMissingOrOfAnotherDtype) {
  for (const std::string& type : Optimizers()) {
    EXPECT_THAT(ErrorOf(type, [](OpCase& made) { made.inputs.erase("MasterParam"); }),
                HasSubstr(type + ": MasterParam has 0 arguments, expected 2 as Param"));
    EXPECT_THAT(ErrorOf(type,
                        [](OpCase& made) {
                          std::erase_if(made.outputs, [](const auto& output) {
                            return output.first == "MasterParamOut";
                          });
                        }),
                HasSubstr(type + ": output \"MasterParamOut\" has 0 arguments, expected 2"));
    for (const DType dtype : {DType::kFloat64, DType::kBFloat16}) {
      const auto change = [&](OpCase& made) {
        Array& master = made.inputs["MasterParam"][1];
        master = In(dtype, master);
      };
      EXPECT_THAT(ErrorOf(type, change), HasSubstr(StrCat(type, ": MasterParam[1] is ", dtype,
                                                          " [4], expected float32 [4]")));
    }
    // The other two-byte dtype, or one of each.
    const auto by_float16 = [](OpCase& made) {
      made.inputs["Grad"][0] = In(DType::kFloat16, made.inputs["Grad"][0]);
    };
    EXPECT_THAT(ErrorOf(type, by_float16),
                HasSubstr(type + ": Grad[0] is float16 [2, 3], expected bfloat16 [2, 3]"));
    const auto by_both = [](OpCase& made) {
      made.inputs["Grad"][1] = In(DType::kBFloat16, made.inputs["Grad"][1]);
    };
    EXPECT_THAT(ErrorOf(type, by_both),
                HasSubstr(type + ": Grad[1] is bfloat16 [4], expected float32 [4]"));
  }
}

TEST_F(UpdateError, NamesTheOutputThatIsMissing) {
  ForEachList([this](const OpDef& def, const std::string& slot) {
    for (const auto& [input, output] : def.in_place) {
      if (input != slot || def.FindOutput(output)->dispensable) continue;
      const auto change = [&, name = output](OpCase& made) {
        for (auto& [made_output, count] : made.outputs) count = made_output == name ? 1 : 2;
      };
      EXPECT_THAT(ErrorOf(def.type, change),
                  HasSubstr(StrCat(def.type, ": output \"", output,
                                   "\" has 1 arguments, expected 2 as ", slot)));
    }
  });
}

// An op may leave the next powers unconnected, but not some of them.
TEST_F(UpdateError, NamesAPowerThatIsMissing) {
  const auto outputs = [](int powers) {
    return [powers](OpCase& made) {
      for (auto& [output, count] : made.outputs) {
        if (output == "Beta1PowOut") count = powers;
      }
    };
  };
  for (const char* type : {"adam", "merged_adam", "adamw", "adamax", "lamb"}) {
    EXPECT_EQ(ErrorOf(type, outputs(0)), "") << type;
    EXPECT_THAT(ErrorOf(type, outputs(1)),
                HasSubstr(StrCat(type,
                                 ": output \"Beta1PowOut\" has 1 arguments, expected 2 as "
                                 "Beta1Pow")));
  }
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
