// The trainer.
#include <pybind11/iostream.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/training/program_precision.h"
#include "framework/training/trainer.h"
#include "python_stub/bind_callbacks.h"
#include "python_stub/bind_readers.h"
#include "python_stub/binding.h"
#include "python_stub/ranks.h"

namespace skiff::python {
namespace {

using training::Metric;
using training::MetricValues;
using training::Reader;
using training::Trainer;

// A trainer with what it refers to.
class PythonTrainer {
 public:
  PythonTrainer(training::TrainingProgram program, std::shared_ptr<Reader> train,
                std::shared_ptr<Reader> validation, const training::TrainerOptions& options)
      : program_(std::move(program)),
        train_(std::move(train)),
        validation_(std::move(validation)),
        ranks_(RanksOf(options.compile.data_parallel)),
        buffer_(py::module_::import("sys").attr("stdout")),
        out_(&buffer_) {
    const py::gil_scoped_release release;
    trainer_.emplace(&program_, train_.get(), validation_.get(), options, &out_);
  }

  void Resume() {
    const Use use(*this);
    DoOn(ranks_, [this] { trainer_->Resume(); });
  }

  py::object Run(const py::object& result_class) {
    training::TrainingResult result;
    {
      const Use use(*this);
      result = DoOn(ranks_, [this] { return trainer_->Run(); });
      out_.flush();
    }
    // The trainer has saved a checkpoint. Python's own handler has not seen the signal.
    if (result.signal == SIGINT) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw py::error_already_set();
    }
    py::list records;
    for (const training::TrainingRecord& record : result.records) {
      records.append(RecordObject(record));
    }
    return result_class(result.finished, result.signal, result.best_value, result.best_epoch,
                        records, result.weights_hash);
  }

  py::dict Evaluate() {
    MetricValues values;
    {
      const Use use(*this);
      values = DoOn(ranks_, [this] { return trainer_->Evaluate(); });
    }
    return ValuesObject(values);
  }

  std::string WeightsHash() {
    const Use use(*this);
    return trainer_->WeightsHash();
  }

 private:
  // Lets other threads of Python run. The trainer is one thread's at a time, and its reader, which
  // may be a function of Python, can't use it either.
  class Use {
   public:
    explicit Use(PythonTrainer& trainer) : lock_(trainer.mutex_, std::try_to_lock) {
      SKIFF_ENFORCE(lock_.owns_lock(), kFailedPrecondition, "this trainer is running already");
    }

   private:
    std::unique_lock<std::mutex> lock_;
    py::gil_scoped_release release_;
  };

  std::mutex mutex_;
  training::TrainingProgram program_;
  std::shared_ptr<Reader> train_;
  std::shared_ptr<Reader> validation_;
  Ranks* const ranks_;  // that train together; nullptr: this process trains alone
  py::detail::pythonbuf buffer_;
  std::ostream out_;
  std::optional<Trainer> trainer_;
};

std::unique_ptr<PythonTrainer> MakeTrainer(
    const Program& main, const Program& startup, const Program& test, const py::object& loss,
    const py::object& learning_rate, const std::shared_ptr<PythonReader>& train,
    const std::shared_ptr<PythonReader>& validation, const std::string& output_dir,
    const py::iterable& model_inputs, const py::iterable& model_outputs, int64_t epochs,
    const std::vector<Metric>& metrics, const std::string& decisive_metric,
    const std::string& title, int64_t save_every_steps, int64_t early_stop_epochs,
    const std::string& initial_model, const std::map<std::string, std::string>& configuration,
    const std::string& passes, const Program* model, const py::iterable& callbacks,
    bool data_parallel, const std::string& reduction, int64_t bucket_bytes,
    const std::string& overlap, bool shard_optimizer, bool sync_batch_norm) {
  SKIFF_ENFORCE(model != nullptr || training::PrecisionOf(main).half_parameters == 0,
                kInvalidArgument,
                "the main program has parameters in half and there is no model: expected, as "
                "model, a clone made before minimize, which is saved in float32, or the test "
                "program, which is saved in half");
  training::TrainingProgram program{.main = main.Clone(),
                                    .startup = startup.Clone(),
                                    .test = test.Clone(),
                                    .loss = NameOf(loss),
                                    .metrics = metrics,
                                    .decisive_metric = decisive_metric,
                                    .learning_rate = NameOf(learning_rate),
                                    .model = model == nullptr ? nullptr : model->Clone(),
                                    .model_inputs = NamesOf(model_inputs),
                                    .model_outputs = NamesOf(model_outputs)};
  const RankArguments ranks = {data_parallel, reduction,       bucket_bytes,
                               overlap,       shard_optimizer, sync_batch_norm};
  training::TrainerOptions options = {.title = title,
                                      .output_dir = output_dir,
                                      .epochs = epochs,
                                      .save_every_steps = save_every_steps,
                                      .early_stop_epochs = early_stop_epochs,
                                      .initial_model = initial_model,
                                      .configuration = configuration,
                                      .callbacks = CallbacksOf(callbacks)};
  options.compile = {.passes = ParsePasses(passes),
                     .data_parallel = OptionsOfRanks(ranks, options.place)};
  return std::make_unique<PythonTrainer>(std::move(program), train, validation, options);
}

}  // namespace

void BindTrainer(py::module_& module) {
  const py::object result_class = NamedTupleClass(
      module, "TrainingResult",
      {"finished", "signal", "best_value", "best_epoch", "records", "weights_hash"});
  py::class_<PythonTrainer>(
      module, "Trainer",
      "Trains a model over epochs, with evaluation, checkpoints, a log and a learning curve in the "
      "output directory (docs/training.md).")
      .def(py::init(&MakeTrainer), py::kw_only(), py::arg("main"), py::arg("startup"),
           py::arg("test"), py::arg("loss"), py::arg("learning_rate"), py::arg("train"),
           py::arg("validation"), py::arg("output_dir"), py::arg("model_inputs"),
           py::arg("model_outputs"), py::arg("epochs") = 1,
           py::arg("metrics") = std::vector<Metric>(), py::arg("decisive_metric") = "loss",
           py::arg("title") = "", py::arg("save_every_steps") = 0, py::arg("early_stop_epochs") = 0,
           py::arg("initial_model") = "",
           py::arg("configuration") = std::map<std::string, std::string>(), py::arg("passes") = "",
           py::arg("model") = py::none(), py::arg("callbacks") = py::tuple(),
           py::arg("data_parallel") = RankArguments().data_parallel,
           py::arg("reduction") = RankArguments().reduction,
           py::arg("bucket_bytes") = RankArguments().bucket_bytes,
           py::arg("overlap") = RankArguments().overlap,
           py::arg("shard_optimizer") = RankArguments().shard_optimizer,
           py::arg("sync_batch_norm") = RankArguments().sync_batch_norm,
           "Runs the startup program. learning_rate is the variable of the optimizer's rate; "
           "model_inputs and model_outputs are those of the inference model that the training "
           "saves: of the program `model`, or of the test program. A training with parameters in "
           "half needs `model`. Raises an Error for what would show only after an epoch: an "
           "argument that "
           "isn't there, variables that a program lacks or that nothing gives a value, and a "
           "model that can't be saved. callbacks are objects, of whose methods those are called "
           "that are there: on_step(report, control), on_evaluation(report, control), "
           "on_epoch(record, control), and state() and restore(state), dicts of texts that "
           "checkpoints hold. What they raise comes out of run() unchanged. data_parallel: the "
           "trainers of all ranks train together, with a ShardedReader each; this and the other "
           "arguments about ranks are those of Executor.compile. Then all ranks call resume(), "
           "run() "
           "and evaluate(). Rank 0 alone has records in its result, and writes files.")
      .def("resume", &PythonTrainer::Resume,
           "Continues from the newest checkpoint of the output directory.")
      .def(
          "run", [result_class](PythonTrainer& self) { return self.Run(result_class); },
          "Trains up to the last epoch. Ctrl-C saves a checkpoint between two steps, then raises "
          "KeyboardInterrupt; what a reader raises comes out unchanged.")
      .def("evaluate", &PythonTrainer::Evaluate,
           "Returns the means of the metrics over the validation reader's epoch 0.")
      .def("weights_hash", &PythonTrainer::WeightsHash);
}

}  // namespace skiff::python
