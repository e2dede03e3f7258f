import { response, responseEvent } from '../../wire/responses/answer-schema.ts'
import { responsesRequest } from '../../wire/responses/schema.ts'
import type { OperationDocs } from './operations.ts'
import { pythonClient, typescriptClient } from './samples.ts'

const ask = { model: 'gpt-5-mini', input: 'Hello!' }

/** What the contract says about responses. */
export const responsesOperations = {
  createResponse: {
    summary: 'Create a response',
    description: [
      "Answers an `input`, as a whole or as a stream, in the protocol of OpenAI's newer clients and of its command-line " +
        "tool. Every chat model is available. OpenAI's and Azure's reasoning models are called in this protocol too and " +
        'get fields that are not listed here; all other models are reached by translation, where such fields have no ' +
        'effect. A field that has another name in chat completions is refused with the name it has here.',
      'Responses are not stored: `store` has no effect, and `previous_response_id`, `conversation`, `prompt` and ' +
        '`background` are refused. Send the whole conversation with every request. With `reasoning.encrypted_content` in ' +
        '`include`, the answer contains the reasoning items that the vendor needs back; return them unchanged.',
      '`web_search` works on models that have a price for it; with `external_web_access: false` it is not offered.',
      'A stream ends with `response.completed` or `response.incomplete`. A failure before the first byte is an ordinary ' +
        'error response; a later failure ends the stream with `response.failed` and an `error` object, which official ' +
        'clients throw, and the output that was delivered is billed.',
    ].join('\n\n'),
    once: true,
    request: { schema: responsesRequest, example: ask },
    answer: {
      description: 'The response; with `stream`, a series of events.',
      schema: response,
      event: responseEvent,
      metered: true,
    },
    errors: [400, 401, 402, 404, 413, 415, 429, 502, 503, 504],
    samples: {
      curl: `curl "$TURNPIKE_URL/v1/responses" \\
  -H "Authorization: Bearer $TURNPIKE_KEY" \\
  -H "Content-Type: application/json" \\
  -d '${JSON.stringify(ask)}'`,
      typescript: `${typescriptClient}
const response = await client.responses.create({ model: '${ask.model}', input: '${ask.input}' })
console.log(response.output_text)

const stream = await client.responses.create({ model: '${ask.model}', input: '${ask.input}', stream: true })
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta)
}`,
      python: `${pythonClient}
response = client.responses.create(model="${ask.model}", input="${ask.input}")
print(response.output_text)

stream = client.responses.create(model="${ask.model}", input="${ask.input}", stream=True)
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="")`,
    },
  },
} as const satisfies Record<string, OperationDocs>
