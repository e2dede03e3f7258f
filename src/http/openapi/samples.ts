/** The same request three ways: pasted into a shell, and with the official client in two languages. */
export type Samples = { readonly curl: string; readonly typescript: string; readonly python: string }

export const typescriptClient = `import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: \`\${process.env.TURNPIKE_URL}/v1\`,
  apiKey: process.env.TURNPIKE_KEY,
})
`
export const pythonClient = `import os
from openai import OpenAI

client = OpenAI(
    base_url=os.environ["TURNPIKE_URL"] + "/v1",
    api_key=os.environ["TURNPIKE_KEY"],
)
`

export function chatSamples(model: string): Samples {
  return {
    curl: `curl "$TURNPIKE_URL/v1/chat/completions" \\
  -H "Authorization: Bearer $TURNPIKE_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
    typescript: `${typescriptClient}
const answer = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello!' }],
})
console.log(answer.choices[0]?.message.content)

const stream = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello!' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')`,
    python: `${pythonClient}
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello!"}],
)
print(answer.choices[0].message.content)

stream = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello!"}],
    stream=True,
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="")`,
  }
}

const anthropicTypescript = `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: process.env.TURNPIKE_URL, apiKey: process.env.TURNPIKE_KEY })
`
const anthropicPython = `import os
from anthropic import Anthropic

client = Anthropic(base_url=os.environ["TURNPIKE_URL"], api_key=os.environ["TURNPIKE_KEY"])
`

export function messageSamples(model: string): Samples {
  return {
    curl: `curl "$TURNPIKE_URL/v1/messages" \\
  -H "x-api-key: $TURNPIKE_KEY" \\
  -H "anthropic-version: 2023-06-01" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "max_tokens": 1024, "messages": [{"role": "user", "content": "Hello!"}]}'`,
    typescript: `${anthropicTypescript}
const message = await client.messages.create({
  model: '${model}',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello!' }],
})
console.log(message.content)`,
    python: `${anthropicPython}
message = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello!"}],
)
print(message.content)`,
  }
}

export function countSamples(model: string): Samples {
  return {
    curl: `curl "$TURNPIKE_URL/v1/messages/count_tokens" \\
  -H "x-api-key: $TURNPIKE_KEY" \\
  -H "anthropic-version: 2023-06-01" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
    typescript: `${anthropicTypescript}
const messages = [{ role: 'user' as const, content: 'Hello!' }]
console.log(await client.messages.countTokens({ model: '${model}', messages }))`,
    python: `${anthropicPython}
messages = [{"role": "user", "content": "Hello!"}]
print(client.messages.count_tokens(model="${model}", messages=messages))`,
  }
}

export const listSamples: Samples = {
  curl: `curl "$TURNPIKE_URL/v1/models" -H "Authorization: Bearer $TURNPIKE_KEY"`,
  typescript: `${typescriptClient}
for await (const model of client.models.list()) console.log(model.id)`,
  python: `${pythonClient}
for model in client.models.list():
    print(model.id)`,
}

export function modelSamples(model: string): Samples {
  return {
    curl: `curl "$TURNPIKE_URL/v1/models/${model}" -H "Authorization: Bearer $TURNPIKE_KEY"`,
    typescript: `${typescriptClient}
console.log(await client.models.retrieve('${model}'))`,
    python: `${pythonClient}
print(client.models.retrieve("${model}"))`,
  }
}

export const usageSamples: Samples = {
  curl: `curl "$TURNPIKE_URL/v1/usage?group_by=day&from=2026-11-01" -H "Authorization: Bearer $TURNPIKE_KEY"`,
  typescript: `${typescriptClient}
console.log(await client.get('/usage', { query: { group_by: 'day', from: '2026-11-01' } }))`,
  python: `${pythonClient}
print(client.get("/usage", cast_to=object, options={"params": {"group_by": "day", "from": "2026-11-01"}}))`,
}

export const balanceSamples: Samples = {
  curl: `curl "$TURNPIKE_URL/v1/balance" -H "Authorization: Bearer $TURNPIKE_KEY"`,
  typescript: `${typescriptClient}
console.log(await client.get('/balance'))`,
  python: `${pythonClient}
print(client.get("/balance", cast_to=object))`,
}
