// A communicator of NCCL that doesn't block: a call may return before NCCL has appended the work to
// the stream, and asking for the state (ncclCommGetAsyncError) says when it has. So a rank that
// doesn't come is no reason to wait for ever.
#include "framework/comm/nccl_communicator.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/base/shared_library.h"
#include "framework/base/str_cat.h"
#include "framework/comm/gather.h"
#include "framework/comm/message_checks.h"
#include "framework/comm/nccl_declarations.h"
#include "framework/comm/polling.h"
#include "memory/device.h"
#include "memory/places.h"

namespace skiff {
namespace {

struct Library {
  nccl::GetVersionFunction* version = nullptr;
  nccl::GetUniqueIdFunction* make_id = nullptr;
  nccl::InitFunction* init = nullptr;
  nccl::CommFunction* finalize = nullptr;
  nccl::CommFunction* destroy = nullptr;
  nccl::CommFunction* abort = nullptr;
  nccl::AsyncErrorFunction* state = nullptr;
  nccl::ErrorStringFunction* error = nullptr;
  nccl::LastErrorFunction* last_error = nullptr;
  nccl::GroupFunction* begin_group = nullptr;
  nccl::GroupFunction* end_group = nullptr;
  nccl::SendFunction* send = nullptr;
  nccl::ReceiveFunction* receive = nullptr;
  nccl::AllReduceFunction* all_reduce = nullptr;
  std::string failure;  // why there is no NCCL to use; "" if there is one
};

bool FindAll(SharedLibrary* at, Library* library) {
  return at->Find("ncclGetVersion", &library->version) &&
         at->Find("ncclGetUniqueId", &library->make_id) &&
         at->Find("ncclCommInitRankConfig", &library->init) &&
         at->Find("ncclCommFinalize", &library->finalize) &&
         at->Find("ncclCommDestroy", &library->destroy) &&
         at->Find("ncclCommAbort", &library->abort) &&
         at->Find("ncclCommGetAsyncError", &library->state) &&
         at->Find("ncclGetErrorString", &library->error) &&
         at->Find("ncclGetLastError", &library->last_error) &&
         at->Find("ncclGroupStart", &library->begin_group) &&
         at->Find("ncclGroupEnd", &library->end_group) && at->Find("ncclSend", &library->send) &&
         at->Find("ncclRecv", &library->receive) && at->Find("ncclAllReduce", &library->all_reduce);
}

Library Load() {
  constexpr const char* kWanted = ": expected NCCL 2.14 or newer, such as the package libnccl2";
  Library library;
  SharedLibrary loaded("libnccl.so.2", {kCudaLibraryFolder});
  int version = 0;
  if (!FindAll(&loaded, &library)) {
    library.failure = StrCat(loaded.failure(), kWanted);
  } else if (library.version(&version) != nccl::kSuccess || version < nccl::kOldestVersion) {
    library.failure = StrCat("libnccl.so.2 has version ", version, kWanted);
  }
  return library;
}

const Library& TheLibrary() {
  static const Library library = Load();
  return library;
}

// Returns the reason for a result other than success, for a message.
std::string ResultText(const char* call, int result, nccl::Comm comm) {
  const std::string last = TheLibrary().last_error(comm);
  return StrCat(call, ": ", TheLibrary().error(result),
                last.empty() ? "" : StrCat(" (", last, ")"));
}

int TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return nccl::kFloat16;
    case DType::kBFloat16:
      return nccl::kBFloat16;
    case DType::kFloat32:
      return nccl::kFloat32;
    case DType::kFloat64:
      return nccl::kFloat64;
    default:
      Throw(ErrorCode::kUnimplemented, "sum of ", dtype, " on a device, expected a float");
  }
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Communicator> host, Place place, double time_limit)
      : Communicator(host->world()),
        host_(std::move(host)),
        place_(place),
        time_limit_(time_limit) {
    const nccl::UniqueId id = ShareId();
    try {
      const DeviceUse use = UsePlace(place_);
      nccl::Config config;
      Await("ncclCommInitRankConfig",
            TheLibrary().init(&comm_, world().size, id, world().rank, &config));
    } catch (...) {
      End();
      throw;
    }
  }

  ~NcclCommunicator() override {
    // A rank that has ended without a word wouldn't come.
    constexpr double kLimit = 10;  // as the header says
    if (comm_ == nullptr) return;
    try {
      const DeviceUse use = UsePlace(place_);
      int state = TheLibrary().finalize(comm_);
      Polling polling(kLimit);
      while (state == nccl::kInProgress && polling.Wait()) state = State();
      if (state == nccl::kSuccess) TheLibrary().destroy(std::exchange(comm_, nullptr));
    } catch (const Error&) {
      // A device that has failed says so in each call.
    }
    End();
  }

  Place place() const override { return place_; }

  void Exchange(std::span<const OutMessage> out, std::span<const InMessage> in,
                DeviceStream* stream) override {
    CheckStream(stream);
    CheckMessages(world(), out, in);
    NoteWork();
    Try([&] {
      CopyOwn(out, in, stream);
      SendAndReceive(out, in, static_cast<CUstream_st*>(stream->handle()));
    });
    CountSent(out);
  }

  void Sum(void* data, int64_t count, DType dtype, DeviceStream* stream) override {
    CheckStream(stream);
    SKIFF_ENFORCE(count >= 0, kInvalidArgument, "sum of ", count, " numbers, expected at least 0");
    const int type = TypeOf(dtype);
    if (count == 0) return;
    NoteWork();
    Try([&] {
      Await("ncclAllReduce",
            TheLibrary().all_reduce(data, data, static_cast<size_t>(count), type, nccl::kSum, comm_,
                                    static_cast<CUstream_st*>(stream->handle())));
    });
  }

  void Check() override {
    Try([&] { CheckRanks(); });
  }

  void CheckWait(double waited_seconds) override {
    Try([&] {
      CheckRanks();
      SKIFF_ENFORCE(waited_seconds <= time_limit_, kIo, TimeLimitText(world(), time_limit_, {}),
                    WorkText());
    });
  }

  void Abort(const std::string& message) noexcept override {
    if (comm_ != nullptr) failure_ = StrCat(world().Text(), " has aborted: ", message);
    End();
    host_->Abort(message);
  }

 private:
  // Makes the id on rank 0. Returns what keeps the rank from going on; "" if nothing does.
  std::string MakeId(nccl::UniqueId* id) const {
    if (!TheLibrary().failure.empty()) return TheLibrary().failure;
    try {
      DeviceOf(place_);
    } catch (const Error& error) {
      return error.what();
    }
    if (world().rank > 0) return "";
    const int result = TheLibrary().make_id(id);
    return result == nccl::kSuccess ? "" : ResultText("ncclGetUniqueId", result, nullptr);
  }

  // Returns the id of the communicator. Throws on all ranks what keeps one of them from going on.
  nccl::UniqueId ShareId() const {
    nccl::UniqueId id{};
    const std::string failure = MakeId(&id);
    const std::vector<std::string> failures = GatherTexts(host_.get(), failure);
    const auto failed = std::ranges::find_if(failures, [](const auto& text) { return text != ""; });
    SKIFF_ENFORCE(failed == failures.end(), kFailedPrecondition, "rank ", failed - failures.begin(),
                  ": ", *failed);
    std::vector<OutMessage> out;
    std::vector<InMessage> in;
    for (int32_t rank = 1; rank < world().size && world().rank == 0; ++rank) {
      out.push_back({.to = rank, .data = &id, .bytes = sizeof(id)});
    }
    if (world().rank > 0) in.push_back({.from = 0, .data = &id, .bytes = sizeof(id)});
    host_->Exchange(out, in, nullptr);
    return id;
  }

  void CheckStream(const DeviceStream* stream) const {
    SKIFF_ENFORCE(stream != nullptr, kInvalidArgument, "no stream for ranks with memory on ",
                  place_, ", expected a stream of the device");
  }

  // Calls the function, on the device. If that throws, no call works any more.
  template <typename Function>
  void Try(const Function& function) {
    SKIFF_ENFORCE(comm_ != nullptr, kIo, failure_);
    try {
      const DeviceUse use = UsePlace(place_);
      function();
    } catch (const std::exception& error) {
      failure_ = error.what();
      End();
      throw;
    }
  }

  // Ends the work that waits on the device for other ranks.
  void End() noexcept {
    if (comm_ != nullptr) TheLibrary().abort(std::exchange(comm_, nullptr));
  }

  void CheckRanks() const {
    host_->Check();
    CheckResult("ncclCommGetAsyncError", State());
  }

  // Keeps the activity of a call, since its work goes on when the call has returned.
  void NoteWork() {
    work_.clear();
    if (activity() != nullptr) work_ = *activity();
  }
  // Returns what an Error says of the call, or of the work that the device has.
  std::string WorkText() const {
    if (activity() != nullptr || work_.empty()) return ActivityText();
    return StrCat("; its device has work up to ", work_);
  }

  void CopyOwn(std::span<const OutMessage> out, std::span<const InMessage> in,
               DeviceStream* stream) const {
    const auto from = std::ranges::find(out, world().rank, &OutMessage::to);
    if (from == out.end() || from->bytes == 0) return;
    const auto to = std::ranges::find(in, world().rank, &InMessage::from);
    stream->Copy(to->data, place_, from->data, place_, static_cast<size_t>(from->bytes));
  }

  void SendAndReceive(std::span<const OutMessage> out, std::span<const InMessage> in,
                      CUstream_st* stream) {
    const auto is_sent = [&](int32_t rank, int64_t bytes) {
      return rank != world().rank && bytes > 0;
    };
    CheckResult("ncclGroupStart", TheLibrary().begin_group());
    // The group ends in any case, since it is the thread's.
    int result = nccl::kSuccess;
    const auto note = [&](int of_call) { result = IsFailure(result) ? result : of_call; };
    for (const OutMessage& message : out) {
      if (!is_sent(message.to, message.bytes)) continue;
      note(TheLibrary().send(message.data, static_cast<size_t>(message.bytes), nccl::kUint8,
                             message.to, comm_, stream));
    }
    for (const InMessage& message : in) {
      if (!is_sent(message.from, message.bytes)) continue;
      note(TheLibrary().receive(message.data, static_cast<size_t>(message.bytes), nccl::kUint8,
                                message.from, comm_, stream));
    }
    note(TheLibrary().end_group());
    Await("ncclSend and ncclRecv", result);
  }

  static bool IsFailure(int result) {
    return result != nccl::kSuccess && result != nccl::kInProgress;
  }

  void CheckResult(const char* call, int result) const {
    SKIFF_ENFORCE(!IsFailure(result), kIo, world().Text(), ": ", ResultText(call, result, comm_),
                  WorkText());
  }

  // Waits until NCCL has done what a call has begun. `result` is the call's.
  void Await(const char* call, int result) {
    CheckResult(call, result);
    Polling polling(time_limit_);
    while ((result = State()) == nccl::kInProgress) {
      host_->Check();
      SKIFF_ENFORCE(polling.Wait(), kIo, TimeLimitText(world(), time_limit_, {}), " in ", call,
                    ActivityText());
    }
    CheckResult(call, result);
  }

  int State() const {
    int state = nccl::kSuccess;
    CheckResult("ncclCommGetAsyncError", TheLibrary().state(comm_, &state));
    return state;
  }

  const std::shared_ptr<Communicator> host_;
  const Place place_;
  const double time_limit_;
  std::string work_;           // the activity of the last call
  nccl::Comm comm_ = nullptr;  // nullptr: ended
  std::string failure_;        // why it has ended
};

}  // namespace

std::shared_ptr<Communicator> MakeNcclRank(std::shared_ptr<Communicator> host, Place place,
                                           double time_limit) {
  SKIFF_ENFORCE(!place.is_cpu(), kInvalidArgument, "place ", place, ": expected a device");
  SKIFF_ENFORCE(time_limit > 0, kInvalidArgument, "time limit of ", time_limit,
                " s, expected more than 0");
  return std::make_shared<NcclCommunicator>(std::move(host), place, time_limit);
}

}  // namespace skiff
