// A recurrent network that predicts the next character of a text, and writes texts.
//
// A step of a layer is written with ordinary ops: one product for the input's part of all gates,
// one for the state's. StaticRnn or a while repeats it. The state at the end of a batch is that at
// the start of the next one, but no gradient flows back across this border (truncated
// backpropagation through time: Williams and Peng 1990).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/builder/control_flow.h"
#include "framework/builder/variable.h"
#include "framework/training/optimization.h"
#include "framework/training/training_program.h"

namespace skiff::models {

struct CharRnnOptions {
  // lstm   Hochreiter and Schmidhuber 1997, with forget gates (Gers et al. 2000)
  // gru    Cho et al. 2014; as in cuDNN, the reset gate acts on the product, not on the state, so
  //        that one product serves all gates
  std::string cell = "lstm";
  // static   a StaticRnn for each layer; what doesn't depend on the state runs once for all steps
  // while    one while around a step of the whole network; the same losses up to rounding
  std::string loop = "static";
  int64_t characters = 0;  // must be set
  int64_t embedding = 64;
  int64_t hidden = 256;
  int64_t layers = 1;
  // Whether a batch begins with the states that the batch before has left, so that its streams go
  // on. If not, each batch begins with zeros, and batches can be computed in any order: by several
  // ranks, too.
  bool carries_states = true;
};

// The table of the characters' vectors, [characters, embedding], the first parameter.
inline constexpr const char* kEmbeddingTable = "embedding.w";
// The names of the states, [batch_size, hidden] each: persistable variables, which a step leaves
// for the next one.
std::vector<std::string> CharRnnStates(const CharRnnOptions& options);

// Appends the network to the default programs and returns its mean loss per character in nats. The
// inputs are the feeds of a StreamReader. Throws an Error (kInvalidArgument) for another cell or
// loop, and for a size below 1.
Variable CharRnnLoss(const Variable& ids, const Variable& label, const Variable& carried,
                     const CharRnnOptions& options);

// The feeds of the program that writes, all int64 except the temperature, and the program's result.
inline constexpr const char* kPrompt = "prompt";  // [p], at least one character
inline constexpr const char* kRoom = "room";      // [n]: its extent is the length to write
inline constexpr const char* kTemperature = "temperature";  // [1], float32, positive
inline constexpr const char* kTopK = "top_k";               // [1], at least 1
// Returns a program that reads the prompt and writes n characters, each drawn from the top_k most
// probable ones with probabilities proportional to exp(score / temperature). Its output is [n].
// Throws what CharRnnLoss throws.
std::unique_ptr<Program> BuildCharRnnWriter(const CharRnnOptions& options, std::string* written);

// The metric that decides is the loss. The saved model is that of BuildCharRnnWriter. Throws what
// CharRnnLoss and Optimize throw, and an Error (kInvalidArgument) for a batch_size below 1.
training::TrainingProgram BuildCharRnn(const CharRnnOptions& options, int64_t batch_size,
                                       const training::OptimizationOptions& optimization,
                                       uint64_t seed);

}  // namespace skiff::models
