// The networks that the tests of translation try.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "models/seq2seq/network.h"

namespace skiff::models {

struct Variant {
  std::string name;
  void (*set)(Seq2SeqOptions*);
};

// Each option by itself, and many together.
inline const Variant kVariants[] = {
    {"Default", [](Seq2SeqOptions*) {}},
    {"Lstm", [](Seq2SeqOptions* o) { o->cell = "lstm"; }},
    {"Layers", [](Seq2SeqOptions* o) { o->layers = 2; }},
    {"OneDirection", [](Seq2SeqOptions* o) { o->bidirectional = false; }},
    {"Luong", [](Seq2SeqOptions* o) { o->attention = "luong"; }},
    {"LstmLuong",
     [](Seq2SeqOptions* o) {
       o->cell = "lstm";
       o->attention = "luong";
     }},
    {"InputFeeding",
     [](Seq2SeqOptions* o) {
       o->attention = "luong";
       o->input_feeding = true;
     }},
    {"Tied", [](Seq2SeqOptions* o) { o->tied_embeddings = true; }},
    {"Loop", [](Seq2SeqOptions* o) { o->decoder = "dynamic_rnn"; }},
    {"Smoothed", [](Seq2SeqOptions* o) { o->label_smoothing = 0.1f; }},
    {"Many",
     [](Seq2SeqOptions* o) {
       o->cell = "lstm";
       o->layers = 2;
       o->bidirectional = false;
       o->attention = "luong";
       o->input_feeding = true;
       o->tied_embeddings = true;
       o->label_smoothing = 0.1f;
     }},
};

inline std::string NameOfVariant(const ::testing::TestParamInfo<Variant>& info) {
  return info.param.name;
}

}  // namespace skiff::models
