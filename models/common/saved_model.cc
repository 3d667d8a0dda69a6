#include "models/common/saved_model.h"

#include "framework/base/error.h"
#include "framework/io/inference_model.h"
#include "framework/tensor/dims_agree.h"
#include "framework/training/half_model.h"

namespace skiff::models {
namespace {

std::string TextOfDims(std::span<const int64_t> dims) {
  std::vector<std::string> texts;
  for (const int64_t dim : dims) texts.push_back(dim < 0 ? "any" : StrCat(dim));
  return StrCat("[", Join(texts, ", "), "]");
}

}  // namespace

template <typename T>
std::span<const T> ModelOutput::Values(const std::string& what, std::span<const int64_t> dims,
                                       T least, T most) const {
  const Shape& shape = tensor_.shape();
  const bool is_dense = tensor_.has_data() && tensor_.layout().is_plain() && tensor_.lod().empty();
  const bool fits = is_dense && tensor_.dtype() == kDTypeOf<T> && DimsAgree(shape.dims(), dims) &&
                    shape.element_count() > 0;
  SKIFF_ENFORCE(fits, kInvalidArgument, where_, ": the ", what, " are ", tensor_.dtype(), " ",
                shape,
                tensor_.array() != nullptr     ? " of an array"
                : tensor_.is_selected_rows()   ? " of selected rows"
                : !tensor_.lod().empty()       ? " with a LoD"
                : !tensor_.has_data()          ? " without values"
                : !tensor_.layout().is_plain() ? " in another layout"
                : shape.element_count() == 0   ? " without elements"
                                               : "",
                ", expected ", is_dense ? "" : "a dense ", kDTypeOf<T>, " ", TextOfDims(dims));
  const std::span<const T> values = tensor_.values<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    // Not the opposite comparison, which NaN would pass.
    SKIFF_ENFORCE(values[i] >= least && values[i] <= most, kInvalidArgument, where_, ": element ",
                  i, " of the ", what, " is ", values[i], ", expected ", least, " to ", most);
  }
  return values;
}

std::span<const float> ModelOutput::Floats(const std::string& what, std::span<const int64_t> dims,
                                           float least, float most) const {
  return Values<float>(what, dims, least, most);
}

std::span<const int64_t> ModelOutput::Integers(const std::string& what,
                                               std::span<const int64_t> dims, int64_t least,
                                               int64_t most) const {
  return Values<int64_t>(what, dims, least, most);
}

ModelOutput ModelOutput::WithoutLoD() const {
  if (tensor_.lod().empty()) return *this;
  Tensor rows = tensor_;
  rows.set_lod({});
  return {std::move(rows), where_};
}

SavedModel::SavedModel(const std::string& directory, Place place)
    : directory_(directory), executor_(place) {
  InferenceModel model =
      LoadInferenceModel(directory, &executor_.scope(), {.params_filename = kCombinedParamsFile});
  program_ = std::move(model.program);
  feed_names_ = std::move(model.feed_names);
  fetch_names_ = std::move(model.fetch_names);
}

void SavedModel::CheckIs(const std::string& expected, const std::vector<std::string>& feeds,
                         size_t fetches) const {
  SKIFF_ENFORCE(feed_names_ == feeds, kInvalidArgument, directory_, ": a model of ",
                Join(feed_names_, ", "), ": expected ", expected, ", which reads ",
                Join(feeds, ", "));
  SKIFF_ENFORCE(fetch_names_.size() == fetches, kInvalidArgument, directory_,
                ": a model that returns ", fetch_names_.size(), " values: expected ", expected,
                ", which returns ", fetches);
}

const Var& SavedModel::VarOfRank(const std::string& name, size_t rank) const {
  const Var* var = program_->root()->FindVar(name);
  SKIFF_ENFORCE(var != nullptr, kInvalidArgument, directory_, ": the model has no variable \"",
                name, "\"");
  SKIFF_ENFORCE(var->dims.size() == rank, kInvalidArgument, directory_, ": the model's \"", name,
                "\" has the shape ", TextOfDims(var->dims), ", expected ", rank, " dims");
  return *var;
}

void SavedModel::SetProgram(std::unique_ptr<Program> program, std::vector<std::string> fetches) {
  // The model may be in half, but the program is float32.
  training::CastToDeclared(*program, &executor_);
  program_ = std::move(program);
  fetch_names_ = std::move(fetches);
}

void SavedModel::Compile() {
  compiled_ = std::make_unique<CompiledProgram>(executor_.Compile(*program_));
}

std::vector<ModelOutput> SavedModel::Run(const FeedList& feeds) {
  SKIFF_ENFORCE(compiled_ != nullptr, kFailedPrecondition, directory_,
                ": the model isn't compiled yet: call Compile first");
  std::vector<ModelOutput> outputs;
  for (Tensor& tensor : compiled_->Run(feeds, fetch_names_)) {
    outputs.emplace_back(std::move(tensor), directory_);
  }
  return outputs;
}

}  // namespace skiff::models
