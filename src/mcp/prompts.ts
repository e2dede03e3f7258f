import { ProtocolError } from '@modelcontextprotocol/server'
import type { Capability } from '../capabilities/capability.ts'
import { invalidParams } from './errors.ts'

type Argument = { readonly name: string; readonly description: string; readonly required?: boolean }

export type Prompt = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: readonly Argument[]
  /** The capability that models offered for its argument `model` must have. */
  readonly modelsFor?: Capability
  write(given: Readonly<Record<string, string>>): string
}

const model = (what: string): Argument => ({
  name: 'model',
  description: `The model that ${what}; yours to choose if absent.`,
})

const chosen = (given: Readonly<Record<string, string>>, capability: Capability) =>
  given['model'] === undefined
    ? `Choose a model with \`list_models\` (capability \`${capability}\`).`
    : `Use the model \`${given['model']}\`.`

/** Common jobs, each as the first message of a conversation. They are static: no text in them comes from a vendor. */
export const prompts: readonly Prompt[] = [
  {
    name: 'choose_model',
    title: 'Choose a model',
    description: 'Find the model that fits a job and a budget.',
    arguments: [
      { name: 'job', description: 'What it is for.', required: true },
      { name: 'budget', description: 'What it may cost, in dollars.' },
    ],
    write: ({ job, budget }) =>
      [
        `I need a model for this job: ${job}`,
        budget === undefined ? '' : `It may cost at most $${budget}.`,
        'Call `list_models`, compare abilities and prices, and name the best, a cheaper and a stronger one, each with what',
        'a typical call would cost and why.',
      ].join('\n'),
  },
  {
    name: 'second_opinion',
    title: 'Ask another model',
    description: 'Put a question to another model and weigh its answer.',
    arguments: [{ name: 'question', description: 'What to ask.', required: true }, model('is asked')],
    modelsFor: 'chat',
    write: (given) =>
      [
        `Get a second opinion on this: ${given['question']}`,
        `${chosen(given, 'chat')} Ask it with \`chat\`, then say where you agree with its answer, where not, and why.`,
      ].join('\n'),
  },
  {
    name: 'compare_models',
    title: 'Compare models',
    description: 'Put one question to several models and compare answers and costs.',
    arguments: [
      { name: 'question', description: 'What to ask.', required: true },
      { name: 'models', description: 'Their ids, with commas between them.' },
    ],
    write: ({ question, models }) =>
      [
        `Ask ${models === undefined ? 'three chat models of different vendors (see `list_models`)' : models} this, with \`chat\`:`,
        question,
        'Then show a table of model, answer in short, tokens and cost, and say which you would use.',
      ].join('\n'),
  },
  {
    name: 'illustrate',
    title: 'Illustrate a text',
    description: 'Make an image that fits a text.',
    arguments: [
      { name: 'text', description: 'What it should fit.', required: true },
      { name: 'style', description: 'How it should look.' },
      model('makes it'),
    ],
    modelsFor: 'images',
    write: (given) =>
      [
        `Make an image for this text: ${given['text']}`,
        given['style'] === undefined ? '' : `Style: ${given['style']}`,
        `${chosen(given, 'images')} Write a prompt that says subject, composition, light and style, then call \`generate_image\`.`,
      ].join('\n'),
  },
  {
    name: 'make_video',
    title: 'Make a video',
    description: 'Turn an idea into a short video.',
    arguments: [
      { name: 'idea', description: 'What it shows.', required: true },
      { name: 'seconds', description: 'How long it is.' },
      model('makes it'),
    ],
    modelsFor: 'video',
    write: (given) =>
      [
        `Make a video of this: ${given['idea']}`,
        `${chosen(given, 'video')} Its page, turnpike://models/{id}, says what it takes.`,
        `Say what ${given['seconds'] ?? '5'} seconds will cost and ask me before you call \`generate_video\` with \`wait\`.`,
      ].join('\n'),
  },
  {
    name: 'read_aloud',
    title: 'Read a text aloud',
    description: 'Turn a text into speech.',
    arguments: [{ name: 'text', description: 'What to say.', required: true }, model('speaks')],
    modelsFor: 'speech',
    write: (given) => `Read this aloud with \`speak\`. ${chosen(given, 'speech')}\n\n${given['text']}`,
  },
  {
    name: 'explain_usage',
    title: 'Explain my usage',
    description: 'Say what was spent on what, and how to spend less.',
    arguments: [{ name: 'since', description: 'The first day, such as 2027-01-31; 30 days ago if absent.' }],
    write: ({ since }) =>
      [
        `Call \`get_usage\` grouped by model and by day${since === undefined ? ' for the last 30 days' : ` since ${since}`}, and with \`report: balance\`.`,
        'Say what was spent on what, what stands out, how long the balance lasts at this pace, and which cheaper models would do.',
      ].join('\n'),
  },
]

export function listPrompts() {
  return prompts.map(({ name, title, description, arguments: taken }) => ({
    name,
    title,
    description,
    arguments: taken.map((argument) => ({ ...argument })),
  }))
}

export function getPrompt(name: string, given: Readonly<Record<string, string>>) {
  const prompt = prompts.find((one) => one.name === name)
  if (prompt === undefined) throw new ProtocolError(invalidParams, `Unknown prompt: ${name}`)
  // Clients send a field of a form that was left blank as an empty string.
  const filled = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
  const missing = prompt.arguments.find((argument) => argument.required === true && !(argument.name in filled))
  if (missing !== undefined) throw new ProtocolError(invalidParams, `Missing argument: ${missing.name}`)
  const text = prompt.write(filled)
  return {
    description: prompt.description,
    messages: [{ role: 'user' as const, content: { type: 'text' as const, text } }],
  }
}
