// The interface between Skiff and libskiff_mpi.so, the only part of Skiff that is linked with MPI.
//
// MPI libraries differ in their binary interfaces. No type of MPI is in this one, only types of C.
// So Skiff is compiled without MPI and runs without it, and the plug-in can be built for any MPI
// library. SkiffMpiPlugin() returns its functions.
#pragma once

#include <cstdint>

namespace skiff {

// The version of this interface. Any change needs another one.
inline constexpr int32_t kMpiPluginVersion = 1;

struct MpiWorld {
  int32_t rank;
  int32_t size;
  int32_t local_rank;
  int32_t local_size;
  char host[256];
};

// A request that has ended. The last three say what a request to receive has got.
struct MpiEnd {
  int32_t request;
  int32_t tag;
  int32_t bytes;
  int32_t is_truncated;  // whether the message is longer than the memory for it
};

// One thread at a time calls the functions. A function that returns a text returns nullptr, or what
// went wrong; the text lives until the next call.
//
// send, receive, sum and meet begin a request, and memory must stay until its end. Requests are
// numbered 0, 1, … in the order in which they begin, again from 0 after all have ended.
struct MpiPlugin {
  int32_t version;
  // Starts MPI, unless something else in the process has done so, and says where this rank is.
  const char* (*start)(MpiWorld* world);
  // Sends to a rank, with a tag from 0 to 32767.
  const char* (*send)(const void* data, int32_t bytes, int32_t to, int32_t tag);
  // Receives the next message of a rank, whatever its tag.
  const char* (*receive)(void* data, int32_t bytes, int32_t from);
  // Replaces numbers by their sums over all ranks: floats of 4 or of 8 bytes.
  const char* (*sum)(void* data, int32_t count, int32_t bytes_of_number);
  // Ends when all ranks have called it.
  const char* (*meet)();
  // Doesn't wait. Says which requests have ended since the last call; `ends` has room for all
  // requests.
  const char* (*test)(MpiEnd* ends, int32_t* count);
  // Gives up the requests that haven't ended. As far as MPI can, memory is no longer written to.
  void (*cancel)();
  // Ends MPI, unless something else in the process has started it. All ranks call it.
  const char* (*finish)();
  // Ends the processes of all ranks with this status.
  void (*abort)(int32_t status);
};

}  // namespace skiff

extern "C" const skiff::MpiPlugin* SkiffMpiPlugin();
