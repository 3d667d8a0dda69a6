#include "tools/optimizer_bench/update_timing.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "tools/benchmark/run_times.h"
#include "tools/optimizer_bench/memory_stream.h"

namespace skiff {
namespace {

constexpr const char* kLoop = "loop";

struct Form {
  std::string name;
  CompileOptions options;
};

const std::vector<Form>& Forms() {
  static const std::vector<Form> forms = {
      {kLoop, {}},
      {"merged", {.passes = {.also = {"merge_optimizer"}}}},
      {"flat", {.passes = {.also = {"fuse_optimizer", "flatten_parameters"}}}}};
  return forms;
}

const Form& FormOf(const std::string& name) {
  const auto found = std::ranges::find(Forms(), name, &Form::name);
  SKIFF_ENFORCE(found != Forms().end(), kInvalidArgument, "form \"", name, "\": expected one of ",
                Join(FormNames(), ", "));
  return *found;
}

// A program in one form, ready to run. Each has an executor of its own, since flatten_parameters
// moves the parameters of a scope.
class BoundForm {
 public:
  BoundForm(const UpdateProgram& program, const Form& form, const UpdateTimingOptions& options)
      : executor_(options.place) {
    Initialize(program, &executor_);
    CompileOptions compile = form.options;
    compile.memory = options.memory;
    compile_seconds_ =
        SecondsOf([&] { bound_.emplace(executor_.Compile(program.main, compile).Bind({}, {})); });
  }

  void Step() { bound_->Step(); }
  PlanStatistics statistics() const { return bound_->statistics(); }
  double compile_seconds() const { return compile_seconds_; }

 private:
  Executor executor_;
  std::optional<BoundProgram> bound_;
  double compile_seconds_ = 0;
};

}  // namespace

std::vector<std::string> FormNames() {
  std::vector<std::string> names;
  for (const Form& form : Forms()) names.push_back(form.name);
  return names;
}

int64_t BytesHeld(const UpdateWork& work, size_t forms) {
  const int64_t array_bytes = work.tensors * work.elements * static_cast<int64_t>(sizeof(float));
  // The clipped and the decayed gradient, in forms where they aren't part of the update.
  const int64_t temporaries = work.clip_global_norm || work.l2_decay ? 2 : 0;
  const auto holders = static_cast<int64_t>(forms) + 1;  // the stream is one
  return array_bytes * (holders * ArrayCount(SweepsOf(work)) + temporaries);
}

// Makes the stream and all forms before timing any, then lets TimeInTurn alternate between them, so
// that all of them see the same state of the machine. Shares and ratios come from times of the same
// turn.
UpdateTiming TimeUpdates(const UpdateWork& work, const std::vector<std::string>& forms,
                         const UpdateTimingOptions& options) {
  const std::unique_ptr<UpdateProgram> program = MakeUpdateProgram(work);
  MemoryStream stream(SweepsOf(work), work.tensors * work.elements);
  std::vector<std::unique_ptr<BoundForm>> bound;
  std::vector<std::function<void()>> works = {[&stream] { stream.Run(); }};
  for (const std::string& name : forms) {
    bound.push_back(std::make_unique<BoundForm>(*program, FormOf(name), options));
    works.emplace_back([form = bound.back().get()] { form->Step(); });
  }

  const std::vector<TurnTimes> times = TimeInTurn(works, options.in_turn);
  const TurnTimes& of_stream = times.front();
  UpdateTiming timing{.bytes = stream.bytes(),
                      .stream_seconds = MedianOf(of_stream),
                      .fastest_stream_seconds = of_stream.fastest};
  // Times have the stream first, so form i is entry i + 1.
  const auto loop = std::ranges::find(forms, kLoop) - forms.begin();
  for (size_t i = 0; i < forms.size(); ++i) {
    const PlanStatistics statistics = bound[i]->statistics();
    FormTiming& form = timing.forms.emplace_back();
    form.form = forms[i];
    form.step_seconds = MedianOf(times[i + 1]);
    form.fastest_seconds = times[i + 1].fastest;
    form.launches = statistics.instructions;
    form.planned_bytes = statistics.planned_bytes;
    form.compile_seconds = bound[i]->compile_seconds();
    form.stream_share = MedianRatio(of_stream, times[i + 1]);
    if (loop < std::ssize(forms)) {
      form.loop_over_it = MedianRatio(times[static_cast<size_t>(loop) + 1], times[i + 1]);
    }
  }
  return timing;
}

}  // namespace skiff
