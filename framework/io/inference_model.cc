// MakeInferenceProgram does what Fluid's save_inference_model does, in its order: drop feeds and
// fetches of an earlier save, append a scale after each fetch, drop training ops, prune to what the
// fetches need, append feeds and fetches. So PaddlePaddle reads the result as its own.
#include "framework/io/inference_model.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "framework/io/file.h"
#include "framework/io/parameter_marks.h"
#include "framework/io/parameters.h"
#include "framework/ir/codec.h"
#include "framework/ir/master_name.h"
#include "framework/ir/used_names.h"

namespace skiff {
namespace {

constexpr const char* kFeedHolder = "feed";
constexpr const char* kFetchHolder = "fetch";
constexpr const char* kProgramFile = "__model__";
// Of the files that Paddle 2 writes.
constexpr std::string_view kProgramEnding = ".pdmodel";
constexpr std::string_view kParamsEnding = ".pdiparams";
constexpr const char* kFetchScalePrefix = "save_infer_model/scale_";

bool IsFeedOrFetch(const Op& op) { return op.type == "feed" || op.type == "fetch"; }

void CheckNames(const Block& root, std::vector<std::string> names, std::string_view what) {
  for (const std::string& name : names) {
    const Var* var = root.FindLocalVar(name);
    SKIFF_ENFORCE(var != nullptr, kNotFound, what, " \"", name,
                  "\" is no variable of the program's root block");
    SKIFF_ENFORCE(var->kind == VarKind::kLoDTensor, kInvalidArgument, what, " \"", name, "\" is a ",
                  VarKindName(var->kind), ", expected a lod_tensor");
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  SKIFF_ENFORCE(twice == names.end(), kAlreadyExists, what, " \"", *twice, "\" is named twice");
}

void RemoveFeedsAndFetches(Block* root) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < root->ops().size(); ++i) {
    if (!IsFeedOrFetch(*root->ops()[i])) kept.push_back(i);
  }
  root->ReorderOps(kept);
  std::vector<std::string> holders;
  for (const auto& var : root->vars()) {
    if (var->kind == VarKind::kFeedMinibatch || var->kind == VarKind::kFetchList) {
      holders.push_back(var->name);
    }
  }
  root->RemoveVars(holders);
}

const Op* ProducerOf(const Block& root, const std::string& name) {
  const Op* producer = nullptr;
  for (const auto& op : root.ops()) {
    const std::vector<std::string> names = op->OutputNames();
    // The last writer counts, since a program may write a variable several times.
    if (std::find(names.begin(), names.end(), name) != names.end()) producer = op.get();
  }
  return producer;
}

// A model that is saved again has its scales already; another layer of them would change the names
// of its fetches.
bool NeedsScale(const Block& root, const Var& fetch) {
  if (fetch.dtype == DType::kBool) return false;
  const Op* producer = ProducerOf(root, fetch.name);
  const bool is_scaled = producer != nullptr && producer->type == "scale" &&
                         fetch.name.rfind(kFetchScalePrefix, 0) == 0;
  return !is_scaled;
}

// Returns the name of the variable that replaces the fetched one.
std::string AppendScale(const std::string& fetch, size_t column, Block* root) {
  std::string name = StrCat(kFetchScalePrefix, column);
  if (root->FindVar(name) != nullptr) name = root->program()->UniqueName(name);
  const Var& source = *root->GetVar(fetch);
  Var scaled;
  scaled.name = name;
  scaled.dtype = source.dtype;
  scaled.dims = source.dims;
  scaled.lod_level = source.lod_level;
  root->CreateVar(std::move(scaled));
  Op op("scale");
  op.SetInput("X", {fetch}).SetOutput("Out", {name});
  op.SetAttr("scale", 1.0f).SetAttr("bias", 0.0f).SetAttr("bias_after_scale", true);
  root->AppendOp(std::move(op));
  return name;
}

void CheckFeedsUsed(const Program& pruned, const std::vector<std::string>& feeds) {
  const std::set<std::string> read = NamesRead(pruned);
  for (const std::string& feed : feeds) {
    SKIFF_ENFORCE(read.contains(feed), kInvalidArgument, "feed \"", feed,
                  "\" isn't needed to compute the fetches: leave it out");
  }
}

void CreateHolder(const char* name, VarKind kind, Block* root) {
  Var holder;
  holder.name = name;
  holder.kind = kind;
  holder.persistable = true;
  root->CreateVar(std::move(holder));
}

void AddFeedsAndFetches(const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches, Block* root) {
  CreateHolder(kFeedHolder, VarKind::kFeedMinibatch, root);
  CreateHolder(kFetchHolder, VarKind::kFetchList, root);
  for (size_t i = 0; i < feeds.size(); ++i) {
    Op op("feed");
    op.SetInput("X", {kFeedHolder}).SetOutput("Out", {feeds[i]});
    op.SetAttr("col", static_cast<int32_t>(i));
    // Each at the front, so that columns descend as in Fluid's files.
    root->InsertOp(0, std::move(op));
  }
  for (size_t i = 0; i < fetches.size(); ++i) {
    Op op("fetch");
    op.SetInput("X", {fetches[i]}).SetOutput("Out", {kFetchHolder});
    op.SetAttr("col", static_cast<int32_t>(i));
    root->AppendOp(std::move(op));
  }
}

const std::vector<std::string>& ColumnArguments(const Op& op) {
  return op.type == "feed" ? op.Output("Out") : op.Input("X");
}

void PlaceColumn(const Op& op, std::vector<std::string>* names) {
  const std::vector<std::string>& arguments = ColumnArguments(op);
  const auto column = op.Attr<int32_t>("col", -1);
  SKIFF_ENFORCE(arguments.size() == 1, kDataLoss, "a ", op.type, " op names ", arguments.size(),
                " variables, expected 1");
  SKIFF_ENFORCE(column >= 0 && static_cast<size_t>(column) < names->size(), kDataLoss, "a ",
                op.type, " op has col = ", column, ", expected a value in [0, ", names->size(),
                ")");
  // The columns must be a permutation: every place filled once.
  std::string& name = (*names)[static_cast<size_t>(column)];
  SKIFF_ENFORCE(name.empty(), kDataLoss, "two ", op.type, " ops have col = ", column);
  name = arguments.front();
}

std::vector<std::string> NamesByColumn(const Program& program, std::string_view type) {
  std::vector<const Op*> found;
  for (const auto& op : program.root()->ops()) {
    if (op->type == type) found.push_back(op.get());
  }
  std::vector<std::string> names(found.size());
  for (const Op* op : found) PlaceColumn(*op, &names);
  return names;
}

InferenceModel ReadModel(const std::string& path) {
  const std::string bytes = ReadFile(path);
  try {
    InferenceModel model;
    model.program = ParseProgram(bytes);
    model.feed_names = FeedNames(*model.program);
    model.fetch_names = FetchNames(*model.program);
    return model;
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

// Returns the names of the files in a directory that end so, sorted.
std::vector<std::string> FilesEndingWith(std::string_view ending, const std::string& directory) {
  std::vector<std::string> names;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      std::string name = entry.path().filename().string();
      if (name.ends_with(ending) && !entry.is_directory()) names.push_back(std::move(name));
    }
  } catch (const std::filesystem::filesystem_error& error) {
    Throw(ErrorCode::kNotFound, directory, ": ", error.code().message(),
          ", expected a folder of a model");
  }
  std::ranges::sort(names);
  return names;
}

// Returns the names of `first`, if there is such a file, and of those that end so.
std::vector<std::string> Candidates(const char* first, std::string_view ending,
                                    const std::string& directory) {
  std::vector<std::string> names = FilesEndingWith(ending, directory);
  if (PathExists(JoinPath(directory, first))) names.insert(names.begin(), first);
  return names;
}

std::string FindProgram(const std::string& directory) {
  const std::vector<std::string> names = Candidates(kProgramFile, kProgramEnding, directory);
  SKIFF_ENFORCE(!names.empty(), kNotFound, directory, ": no program: looked for ", kProgramFile,
                " and *", kProgramEnding);
  SKIFF_ENFORCE(names.size() == 1, kInvalidArgument, directory,
                ": several programs: ", Join(names, ", "),
                ": expected one, or its name as model_filename");
  return names[0];
}

// Returns the name of the file of all parameters; empty: each has one. `program`: the name of its
// file.
std::string FindParams(const std::string& directory, const std::string& program,
                       const std::vector<std::string>& variables) {
  if (program.ends_with(kProgramEnding)) {
    const std::string own =
        StrCat(program.substr(0, program.size() - kProgramEnding.size()), kParamsEnding);
    if (PathExists(JoinPath(directory, own))) return own;
  }
  std::vector<std::string> names = Candidates(kCombinedParamsFile, kParamsEnding, directory);
  const auto missing = std::ranges::find_if(
      variables, [&](const std::string& name) { return !PathExists(JoinPath(directory, name)); });
  const bool are_separate = missing == variables.end();
  SKIFF_ENFORCE(are_separate || !names.empty(), kNotFound, directory,
                ": no parameters: looked for ", kCombinedParamsFile, ", *", kParamsEnding,
                " and a file for each variable, of which \"", *missing, "\" isn't there");
  if (names.empty()) return "";
  // Without variables, there is nothing that could be separate.
  if (are_separate && !variables.empty()) names.emplace_back("a file for each variable");
  SKIFF_ENFORCE(names.size() == 1, kInvalidArgument, directory,
                ": parameters in several places: ", Join(names, ", "),
                ": expected one, or its name as params_filename");
  return names[0];
}

// Returns what is to be saved of a variable of the program.
const Tensor& ValueFor(const Var& var, const Scope& scope) {
  const Tensor& own = scope.Get(var.name);
  if (var.dtype != DType::kFloat32 || !IsHalf(own.dtype())) return own;
  const Tensor* master = scope.Find(MasterName(var.name));
  SKIFF_ENFORCE(
      master != nullptr, kFailedPrecondition, "\"", var.name, "\" is ", own.dtype(),
      " in the scope, but the program declares float32, and there are no master weights \"",
      MasterName(var.name), "\": expected these, or a program that declares ", own.dtype());
  return *master;
}

// Sets in `values`, which share their storage with those of the scope, what is to be saved.
void CollectValues(const Program& program, const std::vector<std::string>& names,
                   const Scope& scope, Scope* values) {
  for (const std::string& name : names) {
    const Var& var = PersistableOf(program, name);
    values->Set(name, ValueFor(var, scope));
  }
}

std::string Normal(const std::string& name) {
  return std::filesystem::path(name).lexically_normal().string();
}

// Throws Error if two of the files would be one.
void CheckFileNames(const InferenceModelFiles& files, std::vector<std::string> variables) {
  const std::string model = Normal(files.model_filename);
  SKIFF_ENFORCE(!model.empty(), kInvalidArgument, "the file of the program has no name");
  if (!files.params_filename.empty()) {
    SKIFF_ENFORCE(Normal(files.params_filename) != model, kInvalidArgument,
                  "program and parameters would both be saved as \"", files.model_filename,
                  "\": expected two names");
    return;
  }
  SKIFF_ENFORCE(std::ranges::count(variables, model) == 0, kInvalidArgument, "variable \"", model,
                "\" would be saved as the file of the program: save the parameters combined");
  variables.push_back(model);
  CheckNoFolderAmong(variables);
}

}  // namespace

std::unique_ptr<Program> MakeInferenceProgram(const Program& program,
                                              const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& ops_with_is_test) {
  SKIFF_ENFORCE(!fetches.empty(), kInvalidArgument, "an inference model needs a fetch");
  CheckNames(*program.root(), feeds, "feed");
  CheckNames(*program.root(), fetches, "fetch");
  const std::unique_ptr<Program> whole = program.Clone();
  // Those of an earlier save would count as readers and writers.
  RemoveFeedsAndFetches(whole->root());
  std::vector<std::string> outputs;
  for (size_t i = 0; i < fetches.size(); ++i) {
    const bool scale = NeedsScale(*whole->root(), *whole->root()->GetVar(fetches[i]));
    outputs.push_back(scale ? AppendScale(fetches[i], i, whole->root()) : fetches[i]);
  }
  // Prune works backwards from `outputs`, so the scale ops had to be there before.
  const std::unique_ptr<Program> test = whole->CloneForTest(ops_with_is_test);
  for (const std::string& fetch : fetches) {
    const Var* var = test->root()->FindLocalVar(fetch);
    const bool is_given = std::find(feeds.begin(), feeds.end(), fetch) != feeds.end();
    SKIFF_ENFORCE(var != nullptr &&
                      (var->persistable || is_given || ProducerOf(*test->root(), fetch) != nullptr),
                  kInvalidArgument, "fetch \"", fetch,
                  "\" is computed by no op that is left for inference");
  }
  for (const std::string& feed : feeds) {
    SKIFF_ENFORCE(test->root()->FindLocalVar(feed) != nullptr, kInvalidArgument, "feed \"", feed,
                  "\" isn't needed to compute the fetches: leave it out");
  }
  // These checks come first since Prune's messages would name variables that the caller hasn't
  // seen.
  std::unique_ptr<Program> pruned = test->Prune(feeds, outputs);
  CheckFeedsUsed(*pruned, feeds);
  AddFeedsAndFetches(feeds, outputs, pruned->root());
  return pruned;
}

void SaveInferenceModel(const std::string& directory, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches, const Program& program,
                        const Scope& scope, const SaveInferenceModelOptions& options) {
  const std::unique_ptr<Program> model =
      MakeInferenceProgram(program, feeds, fetches, options.ops_with_is_test);
  const InferenceModelFiles& files = options.files;
  const std::vector<std::string> names = PersistableNames(*model);
  Scope values;
  CollectValues(*model, names, scope, &values);
  // Everything that can fail without the disk comes before the first write.
  const std::string bytes = SerializeProgram(*model);
  CheckFileNames(files, names);
  CreateDirectories(directory);
  if (files.params_filename.empty()) {
    SaveSeparate(values, names, directory);
  } else {
    SaveCombined(values, names, JoinPath(directory, files.params_filename));
  }
  AtomicWriteFile(JoinPath(directory, files.model_filename), bytes);
}

InferenceModel LoadInferenceModel(const std::string& directory, Scope* scope) {
  return LoadInferenceModel(directory, scope, {}, {});
}

InferenceModel LoadInferenceModel(const std::string& directory, Scope* scope,
                                  const InferenceModelFiles& files) {
  return LoadInferenceModel(directory, scope, files.model_filename, files.params_filename);
}

InferenceModel LoadInferenceModel(const std::string& directory, Scope* scope,
                                  const std::optional<std::string>& model_filename,
                                  const std::optional<std::string>& params_filename) {
  const std::string program = model_filename ? *model_filename : FindProgram(directory);
  InferenceModel model = ReadModel(JoinPath(directory, program));
  const std::vector<std::string> names = PersistableNames(*model.program);
  const std::string params =
      params_filename ? *params_filename : FindParams(directory, program, names);
  if (params.empty()) {
    LoadSeparate(*model.program, names, directory, scope);
  } else {
    LoadCombined(*model.program, names, JoinPath(directory, params), scope);
  }
  RestoreParameterMarks(*model.program);
  return model;
}

std::vector<std::string> FeedNames(const Program& program) {
  return NamesByColumn(program, "feed");
}

std::vector<std::string> FetchNames(const Program& program) {
  return NamesByColumn(program, "fetch");
}

}  // namespace skiff
