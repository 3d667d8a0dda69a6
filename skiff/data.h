// The public C++ API for text: vocabularies, tokenizers, masking, readers of text, and the search
// for the text that a network reads. Programs that include it link libskiff_data beside libskiff.
#pragma once

#include "framework/text/basic_tokenizer.h"
#include "framework/text/classification_source.h"
#include "framework/text/ctc_beam_search.h"
#include "framework/text/document_instances.h"
#include "framework/text/documents.h"
#include "framework/text/hold_back.h"
#include "framework/text/instance.h"
#include "framework/text/lexicon.h"
#include "framework/text/marks.h"
#include "framework/text/masking.h"
#include "framework/text/pair_reader.h"
#include "framework/text/parallel_text.h"
#include "framework/text/pretraining_source.h"
#include "framework/text/sentence_pairs.h"
#include "framework/text/token_vocabulary.h"
#include "framework/text/tokenizer.h"
#include "framework/text/vocabulary.h"
#include "framework/text/vocabulary_builder.h"
#include "framework/text/word_pieces.h"
