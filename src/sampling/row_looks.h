// Requests for rows of scores as what a device is to look for in them (ops/score_looks.h), and tokens of what it finds.
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/score_looks.h"
#include "sampling/row_request.h"

namespace transept {

// Whether a look is enough for the request, which no other shares its row with: rows that greedy_row.h and
// candidate_row.h take by pieces.
bool is_looked_at(const RowRequest& request);

// Appends the request's edits to `edits`. REQUIRES: is_looked_at(request).
ScoreLook make_look(const RowRequest& request, std::vector<uint32_t>& edits);

// The same of a request whose edits are those of another one: these are there once.
ScoreLook with_edits_of(const ScoreLook& other, const RowRequest& request);

// Writes the token and its log-probability to `sample`, and of a beam's row its candidates to `top`,
// [num_top_entries()], as the processor does of the same numbers. found: found_words() of the row.
void choose_of_found(const RowRequest& request, int64_t vocab, std::span<const uint32_t> found, RowSample& sample,
                     std::span<TokenLogprob> top);

}  // namespace transept
