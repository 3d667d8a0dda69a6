#include "framework/io/inference_model.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "framework/io/file.h"
#include "framework/io/parameters.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "tests/harness/damage_bytes.h"
#include "tests/harness/full_disk.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

// out = dropout(x * w) + b, a loss and its training, and a state that only training uses.
constexpr const char* kTraining = R"(
program {
  block 0 {
    var "x" float32 [-1, 2] stop_gradient check_feed
    var "label" int64 [-1, 1]
    param "w" float32 [2, 3] persistable
    param "b" float32 [3] persistable
    var "velocity" float32 [2, 3] persistable
    var "lr" float32 [1] persistable
    var "hidden" float32 [-1, 3]
    var "dropped" float32 [-1, 3]
    var "out" float32 [-1, 3]
    var "is_large" bool [-1, 3]
    var "loss" float32 [1]
    var "w@GRAD" float32 [2, 3]
    {Out: ["hidden"]} = mul(X: ["x"], Y: ["w"]) {op_role = 0}
    {Out: ["dropped"]} = dropout(X: ["hidden"]) {is_test = false}
    {Out: ["out"]} = elementwise_add(X: ["dropped"], Y: ["b"]) {axis = 1}
    {Out: ["is_large"]} = greater_than(X: ["out"], Y: ["b"])
    {Out: ["loss"]} = cross_entropy(X: ["out"], Label: ["label"]) {op_role = 256}
    {"Y@GRAD": ["w@GRAD"]} = mul_grad(X: ["x"], Y: ["w"]) {op_role = 1}
    {ParamOut: ["w"], VelocityOut: ["velocity"]} = momentum(Param: ["w"], Grad: ["w@GRAD"], Velocity: ["velocity"], LearningRate: ["lr"]) {op_role = 2}
  }
}
)";

class InferenceModels : public testing::Test {
 protected:
  InferenceModels() {
    training = ParseProgramText(kTraining);
    scope.Set("w", Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    scope.Set("b", Tensor::FromValues<float>({3}, {7, 8, 9}));
  }

  static std::vector<std::string> OpTypes(const Program& program) {
    std::vector<std::string> types;
    for (const auto& op : program.root()->ops()) types.push_back(op->type);
    return types;
  }

  std::unique_ptr<Program> Make(const std::vector<std::string>& feeds,
                                const std::vector<std::string>& fetches) const {
    return MakeInferenceProgram(*training, feeds, fetches, {});
  }

  ErrorCode CodeOfMake(const std::vector<std::string>& feeds,
                       const std::vector<std::string>& fetches) const {
    return ErrorOf([&] { Make(feeds, fetches); }).code();
  }

  std::unique_ptr<Program> training;
  Scope scope;
  TempDirectory directory;
};

TEST_F(InferenceModels, KeepWhatTheFetchesNeed) {
  const auto program = Make({"x"}, {"out"});
  EXPECT_EQ(OpTypes(*program), (std::vector<std::string>{"feed", "mul", "dropout",
                                                         "elementwise_add", "scale", "fetch"}));
  EXPECT_EQ(PersistableNames(*program), (std::vector<std::string>{"b", "w"}));
  EXPECT_TRUE(program->root()->ops()[2]->Attr<bool>("is_test"));
  EXPECT_EQ(FeedNames(*program), std::vector<std::string>{"x"});
  EXPECT_EQ(FetchNames(*program), std::vector<std::string>{"save_infer_model/scale_0"});
  const Var* scaled = program->root()->GetVar("save_infer_model/scale_0");
  EXPECT_EQ(scaled->dims, (std::vector<int64_t>{-1, 3}));
  // So that it can be trained on.
  EXPECT_TRUE(program->root()->GetVar("w")->is_parameter);
  EXPECT_TRUE(program->root()->GetVar("x")->stop_gradient);
  EXPECT_TRUE(program->root()->GetVar("feed")->persistable);
  // The program of the training is as it was.
  EXPECT_EQ(PrintProgram(*training), PrintProgram(*ParseProgramText(kTraining)));
}

// As Fluid saves them. A statistic is written by the op that reads it.
TEST_F(InferenceModels, HaveParametersEvenIfTheFileMarksNone) {
  const auto program = ParseProgramText(R"(
program {
  block 0 {
    var "x" float32 [-1, 3]
    var "scale" float32 [3] persistable
    var "mean" float32 [3] persistable
    var "ids" int64 [3] persistable
    var "unused" float32 [3] persistable
    var "y" float32 [-1, 3]
    {Y: ["y"], MeanOut: ["mean"]} = norm(X: ["x"], Scale: ["scale"], Mean: ["mean"], Ids: ["ids"])
  }
})");
  for (const auto& var : program->root()->vars()) {
    const Tensor three({3}, var->dtype);
    if (var->persistable) scope.Set(var->name, three);
  }
  const auto parameters_of_loaded = [&] {
    AtomicWriteFile(directory / "__model__", SerializeProgram(*program));
    SaveSeparate(scope, PersistableNames(*program), directory.path());
    std::vector<std::string> names;
    Scope loaded;
    const InferenceModel model = LoadInferenceModel(directory.path(), &loaded);
    for (const auto& var : model.program->root()->vars()) {
      if (var->is_parameter) names.push_back(var->name);
    }
    return names;
  };
  EXPECT_EQ(parameters_of_loaded(), std::vector<std::string>{"scale"});
  program->root()->GetVar("unused")->is_parameter = true;
  EXPECT_EQ(parameters_of_loaded(), std::vector<std::string>{"unused"});
}

TEST_F(InferenceModels, PutFeedColumnsDescendingAndFetchColumnsAscending) {
  const auto program = Make({"x", "label"}, {"loss", "out", "is_large"});
  const auto& ops = program->root()->ops();
  EXPECT_EQ(ops[0]->Output("Out"), std::vector<std::string>{"label"});
  EXPECT_EQ(ops[0]->Attr<int32_t>("col"), 1);
  EXPECT_EQ(ops[1]->Attr<int32_t>("col"), 0);
  EXPECT_EQ(ops.back()->Attr<int32_t>("col"), 2);
  EXPECT_EQ(FeedNames(*program), (std::vector<std::string>{"x", "label"}));
  // scale takes no bool.
  EXPECT_EQ(FetchNames(*program),
            (std::vector<std::string>{"save_infer_model/scale_0", "save_infer_model/scale_1",
                                      "is_large"}));
}

TEST_F(InferenceModels, CanStartAtAnActivation) {
  const auto program = Make({"dropped"}, {"out"});
  EXPECT_EQ(OpTypes(*program),
            (std::vector<std::string>{"feed", "elementwise_add", "scale", "fetch"}));
  EXPECT_EQ(PersistableNames(*program), std::vector<std::string>{"b"});
}

TEST_F(InferenceModels, SetIsTestWhereItIsLeftOut) {
  const auto program = MakeInferenceProgram(*training, {"x"}, {"out"}, {"mul"});
  EXPECT_TRUE(program->root()->ops()[1]->Attr<bool>("is_test"));
}

TEST_F(InferenceModels, SayWhichFeedOrFetchIsWrong) {
  const auto expect = [&](const std::vector<std::string>& feeds,
                          const std::vector<std::string>& fetches, ErrorCode code,
                          const std::string& message) {
    ExpectError([&] { Make(feeds, fetches); }, code, message);
  };
  expect({"no"}, {"out"}, ErrorCode::kNotFound,
         "feed \"no\" is no variable of the program's root block");
  expect({"x"}, {"no"}, ErrorCode::kNotFound,
         "fetch \"no\" is no variable of the program's root block");
  expect({"x", "x"}, {"out"}, ErrorCode::kAlreadyExists, "feed \"x\" is named twice");
  expect({"x"}, {}, ErrorCode::kInvalidArgument, "an inference model needs a fetch");
  expect({"x", "label"}, {"out"}, ErrorCode::kInvalidArgument,
         "feed \"label\" isn't needed to compute the fetches: leave it out");
  expect({"x"}, {"w@GRAD"}, ErrorCode::kInvalidArgument,
         "fetch \"w@GRAD\" is computed by no op that is left for inference");
}

TEST_F(InferenceModels, RefuseBadFeedsAndFetches) {
  EXPECT_EQ(CodeOfMake({"no"}, {"out"}), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOfMake({"x"}, {"no"}), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOfMake({"x", "x"}, {"out"}), ErrorCode::kAlreadyExists);
  EXPECT_EQ(CodeOfMake({"x"}, {"out", "out"}), ErrorCode::kAlreadyExists);
  EXPECT_EQ(CodeOfMake({"x"}, {}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfMake({"x", "label"}, {"out"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOfMake({"x"}, {"w@GRAD"}), ErrorCode::kInvalidArgument);
  training->root()->GetVar("hidden")->kind = VarKind::kLoDTensorArray;
  EXPECT_EQ(CodeOfMake({"x"}, {"hidden"}), ErrorCode::kInvalidArgument);
}

TEST_F(InferenceModels, RoundTripInBothLayouts) {
  for (const char* params : {"", "__params__"}) {
    SCOPED_TRACE(params);
    const std::string path = directory / (std::string("model") + params);
    const InferenceModelFiles files{.params_filename = params};
    SaveInferenceModel(path, {"x"}, {"out"}, *training, scope, {.files = files});
    EXPECT_EQ(NamesIn(path), *params == '\0'
                                 ? (std::vector<std::string>{"__model__", "b", "w"})
                                 : (std::vector<std::string>{"__model__", "__params__"}));
    Scope loaded;
    const InferenceModel model = LoadInferenceModel(path, &loaded, files);
    EXPECT_EQ(PrintProgram(*model.program), PrintProgram(*Make({"x"}, {"out"})));
    EXPECT_EQ(model.feed_names, std::vector<std::string>{"x"});
    EXPECT_EQ(model.fetch_names, std::vector<std::string>{"save_infer_model/scale_0"});
    EXPECT_EQ(loaded.Names(), (std::vector<std::string>{"b", "w"}));
    EXPECT_EQ(loaded.Get("w").ToVector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
}

// As a training in half leaves it, whose program was saved before Minimize has rewritten it.
TEST_F(InferenceModels, HoldMasterWeightsOfParametersInHalf) {
  const Tensor master = scope.Get("w");
  scope.Set("w", Tensor({2, 3}, DType::kBFloat16));
  scope.Set("w_fp32_master_0", master);
  for (const char* params : {"", "__params__"}) {
    const std::string folder = directory / StrCat("model", params);
    SaveInferenceModel(folder, {"x"}, {"out"}, *training, scope,
                       {.files = {.params_filename = params}});
    Scope loaded;
    LoadInferenceModel(folder, &loaded, {.params_filename = params});
    EXPECT_EQ(loaded.Names(), (std::vector<std::string>{"b", "w"}));
    EXPECT_EQ(loaded.Get("w").ToVector<float>(), master.ToVector<float>());
  }
  EXPECT_EQ(scope.Get("w").dtype(), DType::kBFloat16);
}

TEST_F(InferenceModels, RefuseHalfWithoutMasterWeights) {
  scope.Set("w", Tensor({2, 3}, DType::kBFloat16));
  const std::string folder = directory / "model";
  const Error error =
      ErrorOf([&] { SaveInferenceModel(folder, {"x"}, {"out"}, *training, scope); });
  EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
  EXPECT_NE(std::string(error.what()).find("\"w\" is bfloat16 in the scope"), std::string::npos)
      << error.what();
  EXPECT_FALSE(PathExists(folder));
}

// Whoever has saved it.
TEST_F(InferenceModels, AreFoundInTheirFolder) {
  const std::pair<std::string, std::string> found[] = {{"__model__", ""},
                                                       {"__model__", "__params__"},
                                                       {"__model__", "x.pdiparams"},
                                                       {"net.pdmodel", "net.pdiparams"},
                                                       {"net.pdmodel", "__params__"},
                                                       {"net.pdmodel", ""}};
  int number = 0;
  for (const auto& [model_filename, params_filename] : found) {
    const std::string path = directory / StrCat(number++);
    const InferenceModelFiles files{model_filename, params_filename};
    SaveInferenceModel(path, {"x"}, {"out"}, *training, scope, {.files = files});
    PutBytes(path + "/net.pdiparams.info", "x");
    Scope loaded;
    EXPECT_EQ(LoadInferenceModel(path, &loaded).feed_names, std::vector<std::string>{"x"});
    EXPECT_EQ(loaded.Get("b").ToVector<float>(), (std::vector<float>{7, 8, 9}));
  }
}

TEST_F(InferenceModels, SayWhatTheyLookedFor) {
  const std::string path = directory / "m";
  Scope loaded;
  const auto expect = [&](ErrorCode code, const std::string& message) {
    ExpectError([&] { LoadInferenceModel(path, &loaded); }, code, path + ": " + message);
    EXPECT_TRUE(loaded.Names().empty());
  };
  expect(ErrorCode::kNotFound, "No such file or directory, expected a folder of a model");
  std::filesystem::create_directory(path);
  expect(ErrorCode::kNotFound, "no program: looked for __model__ and *.pdmodel");
  const auto save = [&](const InferenceModelFiles& files) {
    SaveInferenceModel(path, {"x"}, {"out"}, *training, scope, {.files = files});
  };
  save({.params_filename = "all"});
  expect(ErrorCode::kNotFound,
         "no parameters: looked for __params__, *.pdiparams and a file for each variable, of which "
         "\"b\" isn't there");
  LoadInferenceModel(path, &loaded, {}, "all");
  EXPECT_FALSE(loaded.Names().empty());
  for (const std::string& name : loaded.Names()) loaded.Erase(name);
  save({.params_filename = "a.pdiparams"});
  save({.params_filename = ""});
  expect(
      ErrorCode::kInvalidArgument,
      "parameters in several places: a.pdiparams, a file for each variable: expected one, or its "
      "name as params_filename");
  save({.model_filename = "a.pdmodel", .params_filename = "a.pdiparams"});
  expect(ErrorCode::kInvalidArgument,
         "several programs: __model__, a.pdmodel: expected one, or its name as model_filename");
}

TEST_F(InferenceModels, TakeTheParametersOfTheProgramsOwnName) {
  const std::string path = directory / "m";
  std::filesystem::create_directories(path + "/b");
  Scope other;
  for (const std::string& name : scope.Names()) other.Set(name, CopyToCpu(scope.Get(name)));
  const auto save = [&](const std::string& name, float value) {
    other.Set("b", Tensor::FromValues<float>({3}, {value, value, value}));
    SaveInferenceModel(
        path, {"x"}, {"out"}, *training, other,
        {.files = {.model_filename = name + ".pdmodel", .params_filename = name + ".pdiparams"}});
  };
  save("a", 1);
  save("c", 2);
  save("b/a", 3);
  const auto loaded = [&](const std::string& program) {
    Scope found;
    LoadInferenceModel(path, &found, program, {});
    return found.Get("b").ToVector<float>()[0];
  };
  EXPECT_EQ(loaded("a.pdmodel"), 1);
  EXPECT_EQ(loaded("c.pdmodel"), 2);
  EXPECT_EQ(loaded("b/a.pdmodel"), 3);
}

TEST_F(InferenceModels, AreTheSameWhenSavedAgain) {
  SaveInferenceModel(directory / "a", {"x"}, {"out", "dropped"}, *training, scope);
  const InferenceModel model = LoadInferenceModel(directory / "a", &scope);
  SaveInferenceModel(directory / "b", model.feed_names, model.fetch_names, *model.program, scope);
  EXPECT_EQ(BytesOf(directory / "b/__model__"), BytesOf(directory / "a/__model__"));
  // Other fetches whose scales want names that are taken.
  SaveInferenceModel(directory / "c", model.feed_names, {"dropped", model.fetch_names[0]},
                     *model.program, scope);
  EXPECT_EQ(LoadInferenceModel(directory / "c", &scope).fetch_names[1], model.fetch_names[0]);
}

TEST_F(InferenceModels, RefuseTruncatedAndMissingFiles) {
  const InferenceModelFiles files{.params_filename = "params"};
  const std::string path = directory / "m";
  SaveInferenceModel(path, {"x"}, {"out"}, *training, scope, {.files = files});
  const std::string bytes = BytesOf(path + "/__model__");
  Scope loaded;
  const auto load = [&] { LoadInferenceModel(path, &loaded, files); };
  for (size_t size = 0; size < bytes.size(); ++size) {
    // The block is whole, only the version is gone: to the format that is a program.
    if (size + 4 == bytes.size()) continue;
    SCOPED_TRACE(size);
    PutBytes(path + "/__model__", bytes.substr(0, size));
    const Error error = ErrorOf(load);
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_EQ(std::string(error.what()).find(path + "/__model__: "), 0u) << error.what();
  }
  PutBytes(path + "/__model__", bytes);
  std::filesystem::resize_file(path + "/params", 10);
  EXPECT_EQ(ErrorOf(load).code(), ErrorCode::kDataLoss);
  std::filesystem::remove(path + "/params");
  EXPECT_EQ(ErrorOf(load).code(), ErrorCode::kNotFound);
  std::filesystem::remove(path + "/__model__");
  EXPECT_EQ(ErrorOf(load).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(loaded.Names().empty());
}

TEST_F(InferenceModels, NameFileBlockAndOpOfABadSubBlock) {
  const std::string path = directory / "m";
  SaveInferenceModel(path, {"x"}, {"out"}, *training, scope);
  std::string bytes = BytesOf(path + "/__model__");
  // The attribute is_test of dropout, turned into a block index: type BOOLEAN (6) to BLOCK (8),
  // field b (10) to block_idx (12), its value to 9.
  const std::string from("is_test\x10\x06\x50\x01", 11);
  ASSERT_NE(bytes.find(from), std::string::npos);
  bytes.replace(bytes.find(from), from.size(), std::string("is_test\x10\x08\x60\x09", 11));
  PutBytes(path + "/__model__", bytes);
  Scope loaded;
  ExpectError([&] { LoadInferenceModel(path, &loaded); }, ErrorCode::kDataLoss,
              path +
                  "/__model__: block 0, op #2 \"dropout\": attribute \"is_test\" names block 9, "
                  "expected one in [0, 1)");
  EXPECT_TRUE(loaded.Names().empty());
}

// A thousand mutations of program and parameters: an Error that leaves the scope as it was, or a
// model whose every persistable is loaded.
TEST_F(InferenceModels, SurviveAThousandMutations) {
  const InferenceModelFiles files{.params_filename = "params"};
  const std::string path = directory / "m";
  SaveInferenceModel(path, {"x"}, {"out"}, *training, scope, {.files = files});
  std::mt19937 random(5);
  int loads = 0;
  int refused = 0;
  for (const char* name : {"/__model__", "/params"}) {
    const std::string intact = BytesOf(path + name);
    for (int i = 0; i < 500; ++i) {
      SCOPED_TRACE(i);
      PutBytes(path + name, DamageBytes(intact, &random));
      Scope loaded;
      try {
        const InferenceModel model = LoadInferenceModel(path, &loaded, files);
        ++loads;
        EXPECT_EQ(loaded.Names(), PersistableNames(*model.program));
      } catch (const Error& error) {
        ++refused;
        EXPECT_NE(error.code(), ErrorCode::kResourceExhausted) << error.what();
        EXPECT_TRUE(loaded.Names().empty());
      }
    }
    PutBytes(path + name, intact);
  }
  EXPECT_GT(loads, 20);
  EXPECT_GT(refused, 500);
}

TEST_F(InferenceModels, KeepTheOldOneOnAFullDisk) {
  const std::string path = directory / "m";
  SaveInferenceModel(path, {"x"}, {"out"}, *training, scope);
  const std::string model = BytesOf(path + "/__model__");
  const std::string w = BytesOf(path + "/w");
  scope.FindMutable("w")->data<float>()[0] = 100;
  const Error error = ErrorOf([&] {
    const FileSizeLimit limit(20);
    SaveInferenceModel(path, {"x"}, {"out"}, *training, scope);
  });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(std::string(error.what()).find("write " + path + "/b.tmp-"), 0u) << error.what();
  EXPECT_EQ(BytesOf(path + "/__model__"), model);
  EXPECT_EQ(BytesOf(path + "/w"), w);
  EXPECT_EQ(NamesIn(path), (std::vector<std::string>{"__model__", "b", "w"}));
}

TEST_F(InferenceModels, RefuseADirectoryThatCannotBe) {
  PutBytes(directory / "f", "x");
  ExpectError([&] { SaveInferenceModel(directory / "f/m", {"x"}, {"out"}, *training, scope); },
              ErrorCode::kIo, "create directory " + directory / "f/m: Not a directory");
}

// One would overwrite the other.
TEST_F(InferenceModels, HaveNoTwoFilesOfOneName) {
  const auto refuse = [&](const InferenceModelFiles& files, const std::string& message) {
    ExpectError(
        [&] {
          SaveInferenceModel(directory / "m", {"x"}, {"out"}, *training, scope, {.files = files});
        },
        ErrorCode::kInvalidArgument, message);
    EXPECT_FALSE(std::filesystem::exists(directory / "m"));
  };
  for (const char* params : {"all", "./all", "x/../all"}) {
    refuse({.model_filename = "all", .params_filename = params},
           "program and parameters would both be saved as \"all\": expected two names");
  }
  for (const char* model : {"w", "./w"}) {
    refuse(
        {.model_filename = model},
        "variable \"w\" would be saved as the file of the program: save the parameters combined");
  }
  refuse({.model_filename = "w/model"},
         "\"w/model\" and \"w\" can't be files of their own: the second would be the folder of the "
         "first");
  refuse({.model_filename = ""}, "the file of the program has no name");
}

TEST_F(InferenceModels, NeverHaveAProgramWithoutItsParameters) {
  scope.Erase("b");
  EXPECT_EQ(ErrorOf([&] {
              SaveInferenceModel(directory / "m", {"x"}, {"out"}, *training, scope);
            }).code(),
            ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(directory / "m/__model__"));
}

TEST_F(InferenceModels, RefuseColumnsOutOfPlace) {
  const auto program = Make({"x", "label"}, {"loss"});
  const auto expect = [&](const std::string& message) {
    ExpectError([&] { FeedNames(*program); }, ErrorCode::kDataLoss, message);
  };
  program->root()->ops()[0]->SetAttr("col", int32_t{0});
  expect("two feed ops have col = 0");
  for (int32_t column : {2, -1}) {
    program->root()->ops()[0]->SetAttr("col", column);
    expect(StrCat("a feed op has col = ", column, ", expected a value in [0, 2)"));
  }
  program->root()->ops()[0]->SetAttr("col", int32_t{1}).SetOutput("Out", {});
  expect("a feed op names 0 variables, expected 1");
}

}  // namespace
}  // namespace skiff
