// Readers and the trainer.
#include <pybind11/functional.h>
#include <pybind11/iostream.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/training/array_reader.h"
#include "framework/training/callback.h"
#include "framework/training/program_precision.h"
#include "framework/training/reader.h"
#include "framework/training/reduce_on_plateau.h"
#include "framework/training/streaming_metric.h"
#include "framework/training/trainer.h"
#include "python_stub/binding.h"
#include "python_stub/scope_lock.h"

namespace skiff::python {
namespace {

using training::Batch;
using training::FeedShape;
using training::Metric;
using training::MetricValues;
using training::Reader;
using training::ReaderState;
using training::Trainer;

// ---- readers

// A reader that threads of Python share: a second one that comes in meanwhile gets an Error
// (kFailedPrecondition), and so does the iterator of an epoch after the reader has gone elsewhere.
class PythonReader : public Reader {
 public:
  void StartEpoch(int64_t epoch) final {
    const Use use(*this);
    Start(epoch);
    ++starts_;
  }
  bool Next(Batch* batch) final {
    const Use use(*this);
    return Read(batch);
  }
  void Restore(const ReaderState& state) final {
    const Use use(*this);
    GoTo(state);
    ++starts_;
  }

  // Returns how often the reader has gone to an epoch.
  int64_t starts() const { return starts_; }
  // Returns the feeds of the next batch, or nothing after the last one of the epoch. A feed is an
  // array if that tells all of it, otherwise a Tensor. Throws an Error unless the reader is where
  // it was when starts() was `start`. The caller holds the interpreter.
  std::optional<py::dict> NextFeeds(int64_t start) {
    const Use use(*this);
    SKIFF_ENFORCE(start == starts_, kFailedPrecondition,
                  "the next batch of an epoch, after its reader has started another one: expected "
                  "a reader for each of two epochs that are read at once");
    Batch batch;
    {
      const py::gil_scoped_release release;
      if (!Read(&batch)) return std::nullopt;
    }
    py::dict feeds;
    for (const auto& [name, tensor] : batch.feeds) {
      const bool is_writable = !read_only_.contains(name);
      feeds[py::str(name)] =
          IsAnArray(tensor) ? ArrayOf(tensor, is_writable)
                            : py::cast(PythonTensor{.tensor = tensor, .is_writable = is_writable});
    }
    return feeds;
  }

 protected:
  // As StartEpoch, Next and Restore of Reader.
  virtual void Start(int64_t epoch) = 0;
  virtual bool Read(Batch* batch) = 0;
  virtual void GoTo(const ReaderState& state) = 0;

  // The feeds of the last batch whose memory isn't to be written.
  std::set<std::string> read_only_;

 private:
  class Use {
   public:
    explicit Use(PythonReader& reader) : in_use_(reader.in_use_) {
      SKIFF_ENFORCE(!in_use_.test_and_set(), kFailedPrecondition,
                    "this reader is in use already: expected one thread that uses it");
    }
    ~Use() { in_use_.clear(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::atomic_flag& in_use_;
  };

  std::atomic_flag in_use_;
  std::atomic<int64_t> starts_{0};
};

// ---- batches of a Python iterable

constexpr const char* kEpochKey = "epoch";
constexpr const char* kBatchKey = "batch";

int64_t StateNumber(const ReaderState& state, const char* key) {
  const auto found = state.find(key);
  SKIFF_ENFORCE(found != state.end() && !found->second.empty() && found->second.size() < 19 &&
                    found->second.find_first_not_of("0123456789") == std::string::npos,
                kDataLoss, "the state of an IterableReader has no number \"", key, "\"");
  return std::stoll(found->second);
}

// Returns how many samples a feed has: its outermost sequences, or its rows.
int64_t SamplesOf(const Tensor& feed) {
  return feed.lod().empty() ? feed.shape()[0] : static_cast<int64_t>(feed.lod()[0].size()) - 1;
}

// Reads what `make_epoch(epoch)` iterates over: dicts of arrays. May be called without holding the
// interpreter; what the iterable raises goes to the caller unchanged.
class IterableReader : public PythonReader {
 public:
  IterableReader(py::function make_epoch, int64_t batches_in_epoch)
      : make_epoch_(std::move(make_epoch)), batches_in_epoch_(batches_in_epoch) {}

  ReaderState state() const override {
    return {{kEpochKey, StrCat(epoch_)}, {kBatchKey, StrCat(batch_)}};
  }

  int64_t batches_in_epoch() const override { return batches_in_epoch_; }

 private:
  void Start(int64_t epoch) override {
    SKIFF_ENFORCE(epoch >= 0, kOutOfRange, "epoch ", epoch, ", expected at least 0");
    const py::gil_scoped_acquire gil;
    iterator_ = py::iter(make_epoch_(epoch));
    epoch_ = epoch;
    batch_ = 0;
  }

  bool Read(Batch* batch) override {
    const py::gil_scoped_acquire gil;
    const py::object next = Advance();
    if (!next) return false;
    if (!py::hasattr(next, "keys")) {
      throw py::type_error(StrCat("a batch is ", std::string(py::str(py::type::of(next))),
                                  ", expected a dict from names to arrays"));
    }
    batch->feeds.clear();
    read_only_.clear();
    for (const auto& [variable, value] : py::dict(next)) {
      std::string name = NameOf(variable);
      PythonTensor given = TensorOf(value, StrCat("batch[\"", name, "\"]"));
      if (!given.is_writable) read_only_.insert(name);
      batch->feeds.emplace_back(std::move(name), std::move(given.tensor));
    }
    SKIFF_ENFORCE(!batch->feeds.empty() && batch->feeds[0].second.shape().rank() > 0,
                  kInvalidArgument, "a batch has no array with a first dim, the samples");
    batch->samples = SamplesOf(batch->feeds[0].second);
    ++batch_;
    return true;
  }

  void GoTo(const ReaderState& state) override {
    const int64_t epoch = StateNumber(state, kEpochKey);
    const int64_t batch = StateNumber(state, kBatchKey);
    Start(epoch);
    const py::gil_scoped_acquire gil;
    for (; batch_ < batch; ++batch_) {
      SKIFF_ENFORCE(Advance(), kDataLoss, "epoch ", epoch, " has ", batch_,
                    " batches, expected more than ", batch, " as in the interrupted training");
    }
  }

  // Returns a null object at the end.
  py::object Advance() {
    if (!iterator_) Start(epoch_);
    auto next = py::reinterpret_steal<py::object>(PyIter_Next(iterator_.ptr()));
    if (!next && PyErr_Occurred() != nullptr) throw py::error_already_set();
    return next;
  }

  py::function make_epoch_;
  int64_t batches_in_epoch_;
  py::object iterator_;  // null before the first batch
  int64_t epoch_ = 0;
  int64_t batch_ = 0;  // the next one
};

// ---- batches of arrays

FeedList ArraysOf(const py::object& object) {
  FeedList arrays;
  for (const auto& [variable, value] : py::dict(object)) {
    std::string name = NameOf(variable);
    Tensor array = DenseTensorOf(value, StrCat("arrays[\"", name, "\"]"));
    arrays.emplace_back(std::move(name), std::move(array));
  }
  return arrays;
}

class ArrayReader : public PythonReader {
 public:
  ArrayReader(const py::object& arrays, const training::SampleReaderOptions& options)
      : reader_(ArraysOf(arrays), options) {}

  ReaderState state() const override { return reader_.state(); }
  int64_t batches_in_epoch() const override { return reader_.batches_in_epoch(); }
  std::vector<std::vector<FeedShape>> batch_shapes() const override {
    return reader_.batch_shapes();
  }

 private:
  void Start(int64_t epoch) override { reader_.StartEpoch(epoch); }
  bool Read(Batch* batch) override { return reader_.Next(batch); }
  void GoTo(const ReaderState& state) override { reader_.Restore(state); }

  training::ArrayReader reader_;
};

// The batches of an epoch, for a loop of one's own.
struct Epoch {
  std::shared_ptr<PythonReader> reader;
  int64_t start;

  py::dict Next() const {
    std::optional<py::dict> feeds = reader->NextFeeds(start);
    if (!feeds) throw py::stop_iteration();
    return *std::move(feeds);
  }
};

void BindReaders(py::module_& module) {
  py::class_<Epoch>(
      module, "Epoch",
      "The batches of an epoch: dicts of arrays, and of Tensors for bfloat16, LoD and "
      "selected rows.")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &Epoch::Next);
  py::class_<PythonReader, std::shared_ptr<PythonReader>>(
      module, "Reader",
      "The source of a training's batches. One thread uses a reader, for one epoch at a time.")
      .def(
          "epoch",
          [](const std::shared_ptr<PythonReader>& self, int64_t epoch) {
            self->StartEpoch(epoch);
            return Epoch{self, self->starts()};
          },
          py::arg("epoch"),
          "Returns an iterator over the batches of an epoch, counted from 0. It raises "
          "FailedPreconditionError once the reader has started another epoch.")
      .def("__len__", &PythonReader::batches_in_epoch);
  py::class_<ArrayReader, PythonReader, std::shared_ptr<ArrayReader>>(
      module, "ArrayReader", "Batches of the rows of arrays, shuffled again for each epoch.")
      .def(py::init([](const py::object& arrays, int64_t batch_size, bool shuffle, bool drop_last,
                       uint64_t seed) {
             return std::make_shared<ArrayReader>(
                 arrays, training::SampleReaderOptions{.batch_size = batch_size,
                                                       .shuffle = shuffle,
                                                       .drop_last = drop_last,
                                                       .seed = seed});
           }),
           py::arg("arrays"), py::kw_only(), py::arg("batch_size") = 64, py::arg("shuffle") = false,
           py::arg("drop_last") = false, py::arg("seed") = 0);
  py::class_<IterableReader, PythonReader, std::shared_ptr<IterableReader>>(
      module, "IterableReader",
      "Batches that a function makes: make_epoch(epoch) returns an iterable of dicts from names to "
      "arrays or Tensors. The first one tells how many samples a batch has: its rows, or its "
      "outermost sequences. The function must give the same batches for an epoch each time, since "
      "a resumed training passes over those that it has seen.")
      .def(py::init<py::function, int64_t>(), py::arg("make_epoch"), py::arg("batches_in_epoch"));
}

// ---- metrics of whole evaluations

std::vector<Tensor> TensorsOf(const py::args& values) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    tensors.push_back(DenseTensorOf(values[i], StrCat("values[", i, "]")));
  }
  return tensors;
}

void BindMetrics(py::module_& module) {
  using training::ClassScore;
  using training::ConfusionMatrix;
  using training::StreamingMetric;
  py::class_<StreamingMetric, std::shared_ptr<StreamingMetric>>(
      module, "StreamingMetric", "A metric of all batches together that is no mean over them.")
      .def("reset", &StreamingMetric::Reset, "Forgets all batches.")
      .def(
          "add", [](StreamingMetric& self, const py::args& values) { self.Add(TensorsOf(values)); },
          "Takes the values of one batch. Raises an Error for what it can't count, and takes "
          "nothing "
          "of the batch then.")
      .def_property_readonly("value", &StreamingMetric::Value,
                             "The metric of all batches; NaN if it isn't defined for them.");
  py::class_<training::TopKAccuracy, StreamingMetric, std::shared_ptr<training::TopKAccuracy>>(
      module, "TopKAccuracy",
      "The share of samples whose label [N] is among the k best of their scores [N, classes]. "
      "Takes scores and labels.")
      .def(py::init<int64_t>(), py::arg("k"));
  py::class_<ConfusionMatrix, StreamingMetric, std::shared_ptr<ConfusionMatrix>>(
      module, "ConfusionMatrix",
      "How often a sample of one class was taken for one of another. Takes predictions, scores [N, "
      "classes] or classes [N], and labels [N]. `value` is one of accuracy, macro_precision, "
      "macro_recall and macro_f1.")
      .def(py::init([](int64_t classes, const std::string& value) {
             const std::map<std::string, ClassScore> scores = {
                 {"accuracy", ClassScore::kAccuracy},
                 {"macro_precision", ClassScore::kMacroPrecision},
                 {"macro_recall", ClassScore::kMacroRecall},
                 {"macro_f1", ClassScore::kMacroF1}};
             const auto found = scores.find(value);
             SKIFF_ENFORCE(found != scores.end(), kInvalidArgument, "value = \"", value,
                           "\", expected one of accuracy, macro_precision, macro_recall, macro_f1");
             return std::make_shared<ConfusionMatrix>(classes, found->second);
           }),
           py::arg("classes"), py::kw_only(), py::arg("value") = "macro_f1")
      .def_property_readonly("counts",
                             [](const ConfusionMatrix& self) {
                               py::list rows;
                               for (int64_t label = 0; label < self.classes(); ++label) {
                                 py::list row;
                                 for (int64_t c = 0; c < self.classes(); ++c) {
                                   row.append(self.Count(label, c));
                                 }
                                 rows.append(row);
                               }
                               return rows;
                             })
      .def_property_readonly("accuracy", &ConfusionMatrix::Accuracy)
      .def("precision", &ConfusionMatrix::Precision, py::arg("of_class"))
      .def("recall", &ConfusionMatrix::Recall, py::arg("of_class"))
      .def("f1", &ConfusionMatrix::F1, py::arg("of_class"))
      .def("__str__", &ConfusionMatrix::Text);
  py::class_<training::Auc, StreamingMetric, std::shared_ptr<training::Auc>>(
      module, "Auc",
      "The area under the receiver operating characteristic: exact, or with scores in [0, 1] that "
      "are counted in bins. Takes scores of class 1, [N], or of both classes, [N, 2], and labels "
      "[N], 0 or 1.")
      .def(py::init<int64_t>(), py::kw_only(), py::arg("bins") = 0);
  py::class_<training::Perplexity, StreamingMetric, std::shared_ptr<training::Perplexity>>(
      module, "Perplexity",
      "e to the mean cross-entropy of a token. Takes the mean loss of a batch and its number of "
      "tokens.")
      .def(py::init<>());
}

// ---- the trainer

py::dict ValuesObject(const MetricValues& values) {
  py::dict object;
  for (const auto& [name, value] : values.entries()) object[py::str(name)] = value;
  return object;
}

py::object RecordObject(const training::TrainingRecord& record) {
  py::dict object;
  object["epoch"] = record.epoch;
  object["step"] = record.step;
  object["seconds"] = record.seconds;
  object["learning_rate"] = record.learning_rate;
  object["samples_per_second"] = record.samples_per_second;
  object["train"] = ValuesObject(record.train);
  object["validation"] = ValuesObject(record.validation);
  return object;
}

// ---- callbacks

// What a callback of Python gets. It ends with the call.
class PythonControl {
 public:
  explicit PythonControl(training::TrainingControl* control) : control_(control) {}

  training::TrainingControl& control() const {
    SKIFF_ENFORCE(control_ != nullptr, kFailedPrecondition,
                  "the callback that this belonged to is over");
    return *control_;
  }
  void End() { control_ = nullptr; }

 private:
  training::TrainingControl* control_;
};

// The scope of a running training.
struct TrainingScope {
  std::shared_ptr<PythonControl> control;
  Scope& scope() const { return control->control().scope(); }
};

// Calls those methods of an object that it has. What they raise comes out of Trainer.run.
class PythonCallback final : public training::Callback {
 public:
  explicit PythonCallback(py::object object) : object_(std::move(object)) {}

  void OnStep(const training::StepReport& report, training::TrainingControl* control) override {
    Call(
        "on_step", [&] { return py::cast(report); }, control);
  }
  void OnEvaluation(const training::EvaluationReport& report,
                    training::TrainingControl* control) override {
    Call(
        "on_evaluation", [&] { return py::cast(report); }, control);
  }
  void OnEpoch(const training::TrainingRecord& record,
               training::TrainingControl* control) override {
    Call(
        "on_epoch", [&] { return RecordObject(record); }, control);
  }
  std::map<std::string, std::string> State() const override {
    const py::gil_scoped_acquire gil;
    if (!py::hasattr(object_, "state")) return {};
    return object_.attr("state")().cast<std::map<std::string, std::string>>();
  }
  std::string Name() const override {
    const py::gil_scoped_acquire gil;
    return py::str(py::type::of(object_).attr("__qualname__"));
  }
  void Restore(const std::map<std::string, std::string>& state) override {
    const py::gil_scoped_acquire gil;
    object_.attr("restore")(state);
  }

 private:
  template <class MakeReport>
  void Call(const char* method, const MakeReport& make_report, training::TrainingControl* control) {
    const py::gil_scoped_acquire gil;
    if (!py::hasattr(object_, method)) return;
    const auto given = std::make_shared<PythonControl>(control);
    const struct Ending {
      PythonControl& control;
      ~Ending() { control.End(); }
    } ending{*given};
    object_.attr(method)(make_report(), given);
  }

  py::object object_;
};

std::vector<std::shared_ptr<training::Callback>> CallbacksOf(const py::iterable& objects) {
  std::vector<std::shared_ptr<training::Callback>> callbacks;
  for (const py::handle object : objects) {
    if (py::isinstance<training::ReduceOnPlateau>(object)) {
      callbacks.push_back(object.cast<std::shared_ptr<training::ReduceOnPlateau>>());
    } else {
      const auto has = [&](const char* method) { return py::hasattr(object, method); };
      if (!has("on_step") && !has("on_evaluation") && !has("on_epoch")) {
        throw py::type_error(
            "a callback has none of the methods on_step, on_evaluation and "
            "on_epoch");
      }
      if (has("state") != has("restore")) {
        throw py::type_error(
            "a callback has one of the methods state and restore, expected both "
            "or none");
      }
      callbacks.push_back(
          std::make_shared<PythonCallback>(py::reinterpret_borrow<py::object>(object)));
    }
  }
  return callbacks;
}

void BindCallbacks(py::module_& module) {
  using training::EvaluationReport;
  using training::StepReport;
  py::class_<StepReport>(module, "StepReport", "A step of a training, counted from 1.")
      .def_readonly("epoch", &StepReport::epoch)
      .def_readonly("batch", &StepReport::batch, "Of the epoch.")
      .def_readonly("step", &StepReport::step, "Of the training.")
      .def_readonly("samples", &StepReport::samples)
      .def_readonly("learning_rate", &StepReport::learning_rate)
      .def_property_readonly(
          "metrics", [](const StepReport& self) { return ValuesObject(self.metrics); },
          "The loss and the metrics of this batch, by name.");
  py::class_<EvaluationReport>(module, "EvaluationReport", "An evaluation of an epoch.")
      .def_readonly("epoch", &EvaluationReport::epoch)
      .def_readonly("step", &EvaluationReport::step)
      .def_property_readonly(
          "metrics", [](const EvaluationReport& self) { return ValuesObject(self.metrics); })
      .def_readonly("is_averaged", &EvaluationReport::is_averaged);
  py::class_<TrainingScope>(module, "TrainingScope",
                            "The variables of a running training, during a callback.")
      .def(
          "__getitem__",
          [](const TrainingScope& self, const py::object& name) {
            return ArrayOf(CopyToCpu(self.scope().Get(NameOf(name))));
          },
          py::arg("name"), "Returns a copy of a value as an array. Raises NotFoundError.")
      .def(
          "__setitem__",
          [](const TrainingScope& self, const py::object& name, const py::object& value) {
            const Tensor tensor = TensorOf(value, StrCat("scope[\"", NameOf(name), "\"]")).tensor;
            self.scope().Assign(NameOf(name), CopyToCpu(tensor));
          },
          py::arg("name"), py::arg("value"))
      .def("__contains__",
           [](const TrainingScope& self, const py::object& name) {
             return self.scope().Find(NameOf(name)) != nullptr;
           })
      .def("keys", [](const TrainingScope& self) { return self.scope().Names(); });
  py::class_<PythonControl, std::shared_ptr<PythonControl>>(
      module, "TrainingControl", "A running training, as a callback may change it.")
      .def(
          "stop", [](const PythonControl& self) { self.control().Stop(); },
          "Has the training save a checkpoint and end before its next step.")
      .def(
          "set_learning_rate",
          [](const PythonControl& self, double rate) { self.control().SetLearningRate(rate); },
          py::arg("rate"), "Gives a rate of learning_rate.constant another value.")
      .def_property_readonly("scope", [](const std::shared_ptr<PythonControl>& self) {
        return TrainingScope{.control = self};
      });
  py::class_<training::ReduceOnPlateau, std::shared_ptr<training::ReduceOnPlateau>>(
      module, "ReduceOnPlateau",
      "A callback that lowers the learning rate when a metric of the validation stops getting "
      "better, as PyTorch's ReduceLROnPlateau.")
      .def(py::init([](const std::string& metric, bool larger_is_better, double factor,
                       int64_t patience, double threshold, bool is_relative, int64_t cooldown,
                       double min_rate, double epsilon, const py::object& variable) {
             return std::make_shared<training::ReduceOnPlateau>(
                 training::PlateauOptions{.metric = metric,
                                          .larger_is_better = larger_is_better,
                                          .factor = factor,
                                          .patience = patience,
                                          .threshold = threshold,
                                          .is_relative = is_relative,
                                          .cooldown = cooldown,
                                          .min_rate = min_rate,
                                          .epsilon = epsilon,
                                          .variable = NameOf(variable)});
           }),
           py::kw_only(), py::arg("metric") = "loss", py::arg("larger_is_better") = false,
           py::arg("factor") = 0.1, py::arg("patience") = 10, py::arg("threshold") = 1e-4,
           py::arg("is_relative") = true, py::arg("cooldown") = 0, py::arg("min_rate") = 0.0,
           py::arg("epsilon") = 1e-8, py::arg("variable") = "")
      .def(
          "add",
          [](training::ReduceOnPlateau& self, double value, SharedScope& scope) {
            const ScopeLock lock(scope);
            return self.Add(value, &scope.scope);
          },
          py::arg("value"), py::arg("scope"),
          "In a loop of one's own: takes the next value of the metric. Returns whether it lowered "
          "the rate `variable` in the scope.");
}

// A trainer with what it refers to.
class PythonTrainer {
 public:
  PythonTrainer(training::TrainingProgram program, std::shared_ptr<Reader> train,
                std::shared_ptr<Reader> validation, const training::TrainerOptions& options)
      : program_(std::move(program)),
        train_(std::move(train)),
        validation_(std::move(validation)),
        buffer_(py::module_::import("sys").attr("stdout")),
        out_(&buffer_) {
    const py::gil_scoped_release release;
    trainer_.emplace(&program_, train_.get(), validation_.get(), options, &out_);
  }

  void Resume() {
    const Use use(*this);
    trainer_->Resume();
  }

  py::object Run(const py::object& result_class) {
    training::TrainingResult result;
    {
      const Use use(*this);
      result = trainer_->Run();
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
      values = trainer_->Evaluate();
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
    const std::string& passes, const Program* model, const py::iterable& callbacks) {
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
  return std::make_unique<PythonTrainer>(
      std::move(program), train, validation,
      training::TrainerOptions{.title = title,
                               .output_dir = output_dir,
                               .epochs = epochs,
                               .save_every_steps = save_every_steps,
                               .early_stop_epochs = early_stop_epochs,
                               .initial_model = initial_model,
                               .configuration = configuration,
                               .callbacks = CallbacksOf(callbacks),
                               .compile = {.passes = ParsePasses(passes)}});
}

void BindTrainer(py::module_& module) {
  py::class_<Metric>(module, "Metric",
                     "A number that a program computes in each step, and whose means a training "
                     "reports for each epoch.")
      .def(
          py::init([](const std::string& name, const py::object& variable,
                      const std::string& weight, bool percent, bool larger_is_better,
                      std::shared_ptr<training::StreamingMetric> streaming,
                      const py::iterable& streamed) {
            return Metric{.name = name,
                          .variable = NameOf(variable),
                          .weight = weight,
                          .percent = percent,
                          .larger_is_better = larger_is_better,
                          .streaming = std::move(streaming),
                          .streamed = NamesOf(streamed)};
          }),
          py::arg("name"), py::arg("variable") = "", py::kw_only(), py::arg("weight") = "",
          py::arg("percent") = false, py::arg("larger_is_better") = false,
          py::arg("streaming") = nullptr, py::arg("streamed") = py::tuple(),
          "streaming, a StreamingMetric of the variables `streamed` of the test program, takes the "
          "place of the variable: it is reported of evaluations only.");
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
           "Runs the startup program. learning_rate is the variable of the optimizer's rate; "
           "model_inputs and model_outputs are those of the inference model that the training "
           "saves: of the program `model`, or of the test program. A training with parameters in "
           "half needs `model`. Raises an Error for what would show only after an epoch: an "
           "argument that "
           "isn't there, variables that a program lacks or that nothing gives a value, and a "
           "model that can't be saved. callbacks are objects, of whose methods those are called "
           "that are there: on_step(report, control), on_evaluation(report, control), "
           "on_epoch(record, control), and state() and restore(state), dicts of texts that "
           "checkpoints hold. What they raise comes out of run() unchanged.")
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

}  // namespace

void BindTraining(py::module_& module) {
  BindReaders(module);
  BindMetrics(module);
  BindCallbacks(module);
  BindTrainer(module);
}

}  // namespace skiff::python
