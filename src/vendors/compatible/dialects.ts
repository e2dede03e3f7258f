import { explain as explainArk } from '../ark/explain.ts'
import { images as arkImages } from '../ark/images.ts'
import { video as arkVideo } from '../ark/video.ts'
import { explain as explainDashscope } from '../dashscope/explain.ts'
import { images as dashscopeImages } from '../dashscope/images.ts'
import { speech as dashscopeSpeech } from '../dashscope/speech.ts'
import { video as dashscopeVideo } from '../dashscope/video.ts'
import { explain as explainMinimax } from '../minimax/explain.ts'
import { speech as minimaxSpeech } from '../minimax/speech.ts'
import { video as minimaxVideo } from '../minimax/video.ts'
import { video as openaiVideo } from '../openai/video.ts'
import type { Dialect } from './compatible.ts'

// Cerebras, Fireworks, Groq, Mistral and Nvidia refuse a request for a field that they do not know, where others ignore
// it. OpenAI's clients and many agents send these to every server, and send an answer back with all of its fields.
const hints = ['safety_identifier', 'prompt_cache_retention', 'prompt_cache_options', 'verbosity', 'modalities']
const answerFields = ['refusal', 'annotations', 'audio', 'images', 'reasoning_details']

/**
 * The vendors that speak the common protocol. A vendor that does not know `max_completion_tokens` would ignore it and
 * overrun the hold, so the cap is spelled as each vendor reads it; `either` passes what the client wrote. A vendor that
 * does not know `n`, or ignores it, is asked for one choice at a time. Each begins with its address and key, then says
 * how it differs from the usual manner, and last what it serves besides chat.
 */
export const dialects: readonly Dialect[] = [
  {
    id: 'openai',
    baseUrl: 'https://api.openai.com/v1',
    environment: ['OPENAI_API_KEY'],
    outputCap: 'either',
    storesByDefault: true,
    metadata: 'stored',
    takesDeveloper: true,
    takesHints: true,
    responses: true,
    embeddings: { tokens: true, base64: true },
    images: 'common',
    edits: true,
    speech: 'common',
    video: openaiVideo,
  },
  // Azure's v1 API at the operator's own resource: `https://{resource}.openai.azure.com/openai/v1`, which a channel of
  // this vendor gives as its `baseUrl`. A model is called by the name of its deployment.
  {
    id: 'azure',
    baseUrl: '',
    environment: ['AZURE_OPENAI_API_KEY'],
    keyHeader: 'api-key',
    outputCap: 'either',
    metadata: 'stored',
    takesDeveloper: true,
    takesHints: true,
    responses: true,
    embeddings: { tokens: true, base64: true },
    images: 'common',
    edits: true,
    speech: 'common',
  },
  {
    id: 'deepseek',
    baseUrl: 'https://api.deepseek.com/v1',
    environment: ['DEEPSEEK_API_KEY'],
    choicesMax: 1,
    takesSchema: false,
    thinkingSwitch: 'unless-off',
    pastReasoning: 'wanted',
  },
  {
    id: 'moonshot',
    baseUrl: 'https://api.moonshot.ai/v1',
    environment: ['MOONSHOT_API_KEY', 'KIMI_API_KEY'],
    choicesMax: 1,
    thinkingSwitch: 'unless-off',
    pastReasoning: 'wanted',
  },
  {
    id: 'zhipu',
    baseUrl: 'https://open.bigmodel.cn/api/paas/v4',
    environment: ['ZHIPU_API_KEY', 'ZHIPUAI_API_KEY', 'ZAI_API_KEY'],
    choicesMax: 1,
    thinkingSwitch: 'unless-off',
    embeddings: {},
  },
  // Mistral always sends usage with the last chunk and refuses fields it does not know.
  {
    id: 'mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    environment: ['MISTRAL_API_KEY'],
    usageInStream: 'always',
    pastReasoning: 'parts',
    leftOut: [...hints, 'user', 'store', 'service_tier'],
    messageLeftOut: [...answerFields, 'name', 'reasoning'],
    seedField: 'random_seed',
    callIds: 'nine',
    instructions: 'first',
    afterToolResults: 'model',
    embeddings: { unlabelled: true },
  },
  {
    id: 'groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    environment: ['GROQ_API_KEY'],
    choicesMax: 1,
    outputCap: 'max_completion_tokens',
    pastReasoning: 'refused',
    leftOut: [...hints, 'prompt_cache_key', 'metadata', 'service_tier'],
    messageLeftOut: answerFields,
    speech: 'common',
  },
  {
    id: 'xai',
    baseUrl: 'https://api.x.ai/v1',
    environment: ['XAI_API_KEY'],
    outputCap: 'max_completion_tokens',
    // Even penalties of 0 are refused.
    leftOut: ['presence_penalty', 'frequency_penalty'],
    unstoppable: /^grok-(?:3-mini|(?!.*non-reasoning)(?:[4-9]|code))/,
    images: 'common',
    imagesLeftOut: ['size', 'quality', 'style'],
  },
  {
    id: 'openrouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    environment: ['OPENROUTER_API_KEY'],
    choicesMax: 1,
    embeddings: {},
  },
  {
    id: 'together',
    baseUrl: 'https://api.together.xyz/v1',
    environment: ['TOGETHER_API_KEY'],
    instructions: 'first',
    embeddings: {},
  },
  {
    id: 'fireworks',
    baseUrl: 'https://api.fireworks.ai/inference/v1',
    environment: ['FIREWORKS_API_KEY'],
    instructions: 'first',
    leftOut: [...hints, 'store'],
    messageLeftOut: [...answerFields, 'reasoning'],
    embeddings: {},
  },
  {
    id: 'siliconflow',
    baseUrl: 'https://api.siliconflow.cn/v1',
    environment: ['SILICONFLOW_API_KEY'],
    instructions: 'first',
    embeddings: {},
    speech: 'common',
  },
  // The international address, because the catalogue's dollar prices are its prices. With most of its models
  // `max_tokens` bounds only the visible answer, and not the reasoning before it.
  {
    id: 'dashscope',
    baseUrl: 'https://dashscope-intl.aliyuncs.com',
    root: '/compatible-mode/v1',
    callRoots: ['/api/v1', '/compatible-mode/v1'],
    environment: ['DASHSCOPE_API_KEY'],
    choicesMax: 1,
    streamsOnly: /^q[vw]q/,
    // The open models of Qwen3, but for those that never think.
    streamsThinking: /^qwen3-\d+(?:\.\d+)?b(?!.*-instruct)/,
    outputCap: 'max_completion_tokens',
    thinkingSwitch: 'enable_thinking',
    embeddings: {},
    images: dashscopeImages,
    speech: dashscopeSpeech,
    video: dashscopeVideo,
    explain: explainDashscope,
  },
  {
    id: 'ark',
    baseUrl: 'https://ark.cn-beijing.volces.com/api/v3',
    environment: ['ARK_API_KEY'],
    choicesMax: 1,
    outputCap: 'max_completion_tokens',
    thinkingSwitch: 'thinking',
    embeddings: { base64: true },
    images: arkImages,
    video: arkVideo,
    explain: explainArk,
  },
  {
    id: 'cerebras',
    baseUrl: 'https://api.cerebras.ai/v1',
    environment: ['CEREBRAS_API_KEY'],
    choicesMax: 1,
    outputCap: 'max_completion_tokens',
    pastReasoning: 'refused',
    leftOut: [...hints, 'store', 'metadata'],
    messageLeftOut: answerFields,
  },
  // Perplexity sends its usage so far with every chunk, asked or not.
  {
    id: 'perplexity',
    baseUrl: 'https://api.perplexity.ai',
    environment: ['PERPLEXITY_API_KEY'],
    choicesMax: 1,
    usageInStream: 'always',
    instructions: 'first',
  },
  {
    id: 'nvidia',
    baseUrl: 'https://integrate.api.nvidia.com/v1',
    environment: ['NVIDIA_API_KEY'],
    choicesMax: 1,
    instructions: 'first',
    leftOut: [...hints, 'user', 'prompt_cache_key', 'store', 'metadata', 'service_tier'],
  },
  {
    id: 'minimax',
    baseUrl: 'https://api.minimax.io/v1',
    environment: ['MINIMAX_API_KEY'],
    choicesMax: 1,
    instructions: 'first',
    speech: minimaxSpeech,
    video: minimaxVideo,
    explain: explainMinimax,
  },

  // Servers on the operator's own machine, at their usual ports.
  {
    id: 'ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    local: true,
    choicesMax: 1,
    instructions: 'first',
    embeddings: {},
  },
  {
    id: 'lmstudio',
    baseUrl: 'http://127.0.0.1:1234/v1',
    local: true,
    choicesMax: 1,
    instructions: 'first',
    embeddings: {},
  },
  { id: 'vllm', baseUrl: 'http://127.0.0.1:8000/v1', local: true, instructions: 'first', embeddings: {} },
  { id: 'llamacpp', baseUrl: 'http://127.0.0.1:8080/v1', local: true, instructions: 'first', embeddings: {} },
]

/** Any other server that speaks the common protocol: a channel of this vendor gives its own `baseUrl`. */
export const anyDialect: Dialect = {
  id: 'compatible',
  baseUrl: '',
  outputCap: 'either',
  instructions: 'first',
  embeddings: {},
  images: 'any',
  edits: true,
  speech: 'common',
}
