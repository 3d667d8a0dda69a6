// Small networks for the tests of loops and branches, which compare two ways to write a network.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"

namespace skiff {

struct Network {
  Program main;
  Program startup;
  Variable loss;
};

// harness::SmallNumbers as float32.
Tensor Numbers(const Shape& shape, int seed);

// harness::TrainBySgd with the same feeds in each step.
std::vector<double> Train(const std::function<Variable()>& build, const FeedList& feeds,
                          int steps = 3, const CompileOptions& options = {});

// Expects equal numbers within 1e-6.
void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected);

inline constexpr int64_t kBatch = 3;
inline constexpr int64_t kWidth = 4;
inline constexpr int64_t kHidden = 5;

// Returns tanh(x * u + h * w), with x of [kBatch, kWidth], h of [kBatch, kHidden] and the
// parameters u and w.
Variable Cell(const Variable& x, const Variable& h);
// Returns zeros for h.
Variable FirstState();

// Returns an int64 constant of the shape [1].
Variable Number(double value);

// Appends a while with `count` iterations. The body gets their number.
void Repeat(int64_t count, const std::function<void(const Variable& i)>& body);

}  // namespace skiff
