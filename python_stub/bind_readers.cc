// Readers, and the batches of an epoch.
#include "python_stub/bind_readers.h"

#include <memory>
#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/training/array_reader.h"
#include "framework/training/sharded_reader.h"
#include "framework/training/state_text.h"
#include "python_stub/ranks.h"

namespace skiff::python {

using training::Batch;
using training::FeedShape;
using training::LastRun;
using training::ReaderState;

std::optional<py::dict> PythonReader::NextFeeds(int64_t start) {
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

namespace {

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
    SKIFF_ENFORCE(Pass(batch) == batch, kDataLoss, "epoch ", epoch, " has ", batch_,
                  " batches, expected more than ", batch, " as in the interrupted training");
  }

  int64_t Pass(int64_t count) override {
    const py::gil_scoped_acquire gil;
    int64_t done = 0;
    for (; done < count && Advance(); ++done) ++batch_;
    return done;
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
  int64_t Pass(int64_t count) override { return reader_.Skip(count); }

  training::ArrayReader reader_;
};

// ---- the batches of a rank

// A reader that also Python has.
class SharedReader final : public training::Reader {
 public:
  explicit SharedReader(std::shared_ptr<PythonReader> reader) : reader_(std::move(reader)) {}

  void StartEpoch(int64_t epoch) override { reader_->StartEpoch(epoch); }
  bool Next(Batch* batch) override { return reader_->Next(batch); }
  ReaderState state() const override { return reader_->state(); }
  void Restore(const ReaderState& state) override { reader_->Restore(state); }
  int64_t batches_in_epoch() const override { return reader_->batches_in_epoch(); }
  std::vector<std::vector<FeedShape>> batch_shapes() const override {
    return reader_->batch_shapes();
  }

 private:
  int64_t PassOver(int64_t count) override { return reader_->Skip(count); }

  std::shared_ptr<PythonReader> reader_;
};

LastRun LastRunFromName(const std::string& name) {
  if (name == "filled") return LastRun::kFilled;
  SKIFF_ENFORCE(name == "partial", kInvalidArgument, "the last run of an epoch is \"", name,
                "\", expected filled or partial");
  return LastRun::kPartial;
}

class ShardedReader : public PythonReader {
 public:
  ShardedReader(const std::shared_ptr<PythonReader>& reader, const World& world, LastRun last_run)
      : whole_(reader), reader_(std::make_unique<SharedReader>(reader), world, last_run) {}

  ReaderState state() const override { return reader_.state(); }
  int64_t batches_in_epoch() const override { return reader_.batches_in_epoch(); }
  std::vector<std::vector<FeedShape>> batch_shapes() const override {
    return reader_.batch_shapes();
  }
  int32_t ranks() const override { return reader_.ranks(); }

 private:
  void Start(int64_t epoch) override {
    const ReaderState before = reader_.state();
    const bool goes_on = has_begun_next_ && training::IntegerOf(before, kEpochKey) == epoch;
    if (goes_on) {
      reader_.Restore(before);
    } else {
      reader_.StartEpoch(epoch);
    }
    has_begun_next_ = false;
  }
  bool Read(Batch* batch) override {
    if (!reader_.Next(batch)) return false;
    read_only_ = whole_->read_only();
    has_begun_next_ = batch->from_next_epoch > 0;
    return true;
  }
  void GoTo(const ReaderState& state) override {
    reader_.Restore(state);
    has_begun_next_ = false;
  }
  int64_t Pass(int64_t count) override { return reader_.Skip(count); }

  std::shared_ptr<PythonReader> whole_;
  training::ShardedReader reader_;
  // Whether the last run has taken batches of the next epoch, which then begins behind them.
  bool has_begun_next_ = false;
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

}  // namespace

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
  py::class_<ShardedReader, PythonReader, std::shared_ptr<ShardedReader>>(
      module, "ShardedReader",
      "This rank's batches of a reader, which all ranks have alike: of N ranks, rank r reads the "
      "batches r, N + r, 2 N + r, ... Its len() counts the batches of all ranks. An epoch ends for "
      "all ranks at once. If there are fewer batches left than ranks, the first batches of the "
      "next "
      "epoch fill the run, and the next epoch begins behind them: for trainings. "
      "last_run=\"partial\": the ranks behind the last batch have none, for evaluations.")
      .def(py::init([](const std::shared_ptr<PythonReader>& reader, const std::string& last_run) {
             return std::make_shared<ShardedReader>(reader, Ranks::The().world(),
                                                    LastRunFromName(last_run));
           }),
           py::arg("reader"), py::kw_only(), py::arg("last_run") = "filled");
}

}  // namespace skiff::python
