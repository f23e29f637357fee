// Routes of the instances of a fleet (docs/scaling.md): what a decode instance asks to be encoded is fetched from it,
// or refused. Thread-safe functions.
#pragma once

#include "net/http.h"
#include "server/server_context.h"

namespace transept {

// GET and POST /v1/inputs/{request_id}/{input_id}, of a decode instance (input_service.h).
HttpResponse answer_input(const ServerContext& context, const HttpRequest& request);

// POST /v1/encode, of an encode instance: encodes the prompts of a JSON body, or a body of kFeaturesContentType with
// the other fields as parameters of the query, and answers when the rows are at the decode instance. Other instances
// alone may call it, else 401; 409: a request of that id is in flight.
void handle_encode(const ServerContext& context, const ApiCallPtr& call);

}  // namespace transept
