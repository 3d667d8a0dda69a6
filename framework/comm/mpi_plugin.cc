// libskiff_mpi.so. See mpi_plugin.h.
#include "framework/comm/mpi_plugin.h"

// The C++ interface that MPI dropped in 2012.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

namespace skiff {
namespace {

struct State {
  MPI_Comm ranks = MPI_COMM_NULL;  // a duplicate of MPI_COMM_WORLD, for Skiff alone
  bool is_ours = false;            // whether this plug-in has started MPI
  std::string failure;
  // By number; MPI_REQUEST_NULL after its end.
  std::vector<MPI_Request> requests;
  std::vector<bool> is_receive;
  // Of the last test.
  std::vector<int> ended;
  std::vector<MPI_Status> statuses;
};

// Never destroyed, since MPI may abort while static objects are.
State& The() {
  static State* const state = new State;
  return *state;
}

const char* Failure(std::string text) {
  The().failure = std::move(text);
  return The().failure.c_str();
}

// Returns nullptr for MPI_SUCCESS.
const char* FailureOf(const char* call, int code) {
  if (code == MPI_SUCCESS) return nullptr;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Failure(std::string(call) + ": " + std::string(text, length));
}

const char* StartMpi() {
  int is_over = 0;
  MPI_Finalized(&is_over);
  if (is_over != 0) return Failure("MPI has ended in this process, and can't start again");
  int is_started = 0;
  MPI_Initialized(&is_started);
  int threads = MPI_THREAD_SINGLE;
  const int code = is_started != 0
                       ? MPI_Query_thread(&threads)
                       : MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads);
  if (code != MPI_SUCCESS) return FailureOf("MPI_Init_thread", code);
  The().is_ours = is_started == 0;
  if (threads < MPI_THREAD_SERIALIZED) {
    return Failure("MPI serves one thread only, expected at least MPI_THREAD_SERIALIZED");
  }
  return nullptr;
}

// Sets the rank among the ranks of this host, and their count.
const char* FindLocalRank(MpiWorld* world) {
  MPI_Comm local = MPI_COMM_NULL;
  const int code =
      MPI_Comm_split_type(The().ranks, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &local);
  if (code != MPI_SUCCESS) return FailureOf("MPI_Comm_split_type", code);
  MPI_Comm_rank(local, &world->local_rank);
  MPI_Comm_size(local, &world->local_size);
  return FailureOf("MPI_Comm_free", MPI_Comm_free(&local));
}

void FindHost(MpiWorld* world) {
  char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  const int kept = std::min(length, static_cast<int>(sizeof(world->host)) - 1);
  std::copy_n(name, kept, world->host);
  world->host[kept] = '\0';
}

const char* Start(MpiWorld* world) {
  if (const char* const failure = StartMpi()) return failure;
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &The().ranks);
  if (code != MPI_SUCCESS) return FailureOf("MPI_Comm_dup", code);
  MPI_Comm_set_errhandler(The().ranks, MPI_ERRORS_RETURN);
  MPI_Comm_rank(The().ranks, &world->rank);
  MPI_Comm_size(The().ranks, &world->size);
  FindHost(world);
  return FindLocalRank(world);
}

// Adds a request that `call` has begun.
const char* Add(const char* call, int code, MPI_Request request, bool is_receive) {
  if (code != MPI_SUCCESS) return FailureOf(call, code);
  The().requests.push_back(request);
  The().is_receive.push_back(is_receive);
  return nullptr;
}

const char* Send(const void* data, int32_t bytes, int32_t to, int32_t tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Isend(data, bytes, MPI_BYTE, to, tag, The().ranks, &request);
  return Add("MPI_Isend", code, request, false);
}

const char* Receive(void* data, int32_t bytes, int32_t from) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(data, bytes, MPI_BYTE, from, MPI_ANY_TAG, The().ranks, &request);
  return Add("MPI_Irecv", code, request, true);
}

const char* Sum(void* data, int32_t count, int32_t bytes_of_number) {
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Datatype type = bytes_of_number == 8 ? MPI_DOUBLE : MPI_FLOAT;
  const int code = MPI_Iallreduce(MPI_IN_PLACE, data, count, type, MPI_SUM, The().ranks, &request);
  return Add("MPI_Iallreduce", code, request, false);
}

const char* Meet() {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Ibarrier(The().ranks, &request);
  return Add("MPI_Ibarrier", code, request, false);
}

// Describes the end of a request. Returns what went wrong.
const char* Describe(int request, int code, MPI_Status* status, MpiEnd* end) {
  *end = {.request = request};
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  end->is_truncated = error_class == MPI_ERR_TRUNCATE ? 1 : 0;
  if (code != MPI_SUCCESS && end->is_truncated == 0) return FailureOf("MPI_Testsome", code);
  if (!The().is_receive[request]) return nullptr;
  end->tag = status->MPI_TAG;
  if (end->is_truncated != 0) return nullptr;
  return FailureOf("MPI_Get_count", MPI_Get_count(status, MPI_BYTE, &end->bytes));
}

void Forget() {
  The().requests.clear();
  The().is_receive.clear();
}

const char* Test(MpiEnd* ends, int32_t* count) {
  *count = 0;
  State& state = The();
  const int size = static_cast<int>(state.requests.size());
  state.ended.resize(size);
  state.statuses.resize(size);
  int ended = 0;
  const int code =
      MPI_Testsome(size, state.requests.data(), &ended, state.ended.data(), state.statuses.data());
  const bool are_in_statuses = code == MPI_ERR_IN_STATUS;
  if (code != MPI_SUCCESS && !are_in_statuses) return FailureOf("MPI_Testsome", code);
  for (; *count < (ended == MPI_UNDEFINED ? 0 : ended); ++*count) {
    MPI_Status* const status = &state.statuses[*count];
    const char* const failure =
        Describe(state.ended[*count], are_in_statuses ? status->MPI_ERROR : MPI_SUCCESS, status,
                 &ends[*count]);
    if (failure != nullptr) return failure;
  }
  const auto has_ended = [](MPI_Request request) { return request == MPI_REQUEST_NULL; };
  if (std::ranges::all_of(state.requests, has_ended)) Forget();
  return nullptr;
}

void Cancel() {
  for (size_t i = 0; i < The().requests.size(); ++i) {
    MPI_Request* const request = &The().requests[i];
    if (*request == MPI_REQUEST_NULL || !The().is_receive[i]) continue;
    MPI_Cancel(request);
    MPI_Request_free(request);
  }
  Forget();
}

const char* Finish() {
  const int code = MPI_Comm_free(&The().ranks);
  if (code != MPI_SUCCESS) return FailureOf("MPI_Comm_free", code);
  return The().is_ours ? FailureOf("MPI_Finalize", MPI_Finalize()) : nullptr;
}

void Abort(int32_t status) { MPI_Abort(MPI_COMM_WORLD, status); }

}  // namespace
}  // namespace skiff

const skiff::MpiPlugin* SkiffMpiPlugin() {
  static const skiff::MpiPlugin plugin = {
      .version = skiff::kMpiPluginVersion,
      .start = skiff::Start,
      .send = skiff::Send,
      .receive = skiff::Receive,
      .sum = skiff::Sum,
      .meet = skiff::Meet,
      .test = skiff::Test,
      .cancel = skiff::Cancel,
      .finish = skiff::Finish,
      .abort = skiff::Abort,
  };
  return &plugin;
}
