import { bool, bytes, float, int32, int64, list, map, message, oneOf, string, struct, value } from './proto.ts'

/** The messages of `google.ai.generativelanguage.v1beta` that a chat request is made of. */

/** The fields of a part that hold its content, of which it has exactly one. */
export const dataFields = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
] as const

const part = message(
  'Part',
  () => ({
    text: string,
    inlineData: message('Blob', () => ({ mimeType: string, data: bytes })),
    fileData: message('FileData', () => ({ mimeType: string, fileUri: string })),
    functionCall: message('FunctionCall', () => ({ id: string, name: string, args: struct })),
    functionResponse: message('FunctionResponse', () => ({
      id: string,
      name: string,
      response: struct,
      parts: list(part),
      willContinue: bool,
      scheduling: string,
    })),
    executableCode: struct,
    codeExecutionResult: struct,
    thought: bool,
    thoughtSignature: bytes,
    videoMetadata: struct,
    mediaResolution: struct,
    partMetadata: struct,
  }),
  { name: 'data', fields: dataFields },
)

export const content = message('Content', () => ({ role: string, parts: list(part) }))

/** The subset of OpenAPI schemas that the vendor knows: no `$ref`, `const`, `oneOf`, `additionalProperties`. */
const schema = message('Schema', () => ({
  type: oneOf('Type', 'TYPE_UNSPECIFIED', 'STRING', 'NUMBER', 'INTEGER', 'BOOLEAN', 'ARRAY', 'OBJECT', 'NULL'),
  format: string,
  title: string,
  description: string,
  nullable: bool,
  enum: list(string),
  items: schema,
  maxItems: int64,
  minItems: int64,
  properties: map(schema),
  required: list(string),
  minProperties: int64,
  maxProperties: int64,
  minimum: float,
  maximum: float,
  minLength: int64,
  maxLength: int64,
  pattern: string,
  example: value,
  anyOf: list(schema),
  propertyOrdering: list(string),
  default: value,
}))

const tool = message('Tool', () => ({
  functionDeclarations: list(
    message('FunctionDeclaration', () => ({
      name: string,
      description: string,
      behavior: string,
      parameters: schema,
      parametersJsonSchema: value,
      response: schema,
      responseJsonSchema: value,
    })),
  ),
  googleSearch: struct,
  googleSearchRetrieval: struct,
  codeExecution: struct,
  urlContext: struct,
  computerUse: struct,
  googleMaps: struct,
  fileSearch: struct,
  mcpServers: list(struct),
}))

const toolConfig = message('ToolConfig', () => ({
  functionCallingConfig: message('FunctionCallingConfig', () => ({
    mode: oneOf('FunctionCallingConfig.Mode', 'MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED'),
    allowedFunctionNames: list(string),
  })),
  retrievalConfig: struct,
  includeServerSideToolInvocations: bool,
}))

const safetySetting = message('SafetySetting', () => ({
  category: oneOf(
    'HarmCategory',
    'HARM_CATEGORY_UNSPECIFIED',
    'HARM_CATEGORY_HARASSMENT',
    'HARM_CATEGORY_HATE_SPEECH',
    'HARM_CATEGORY_SEXUALLY_EXPLICIT',
    'HARM_CATEGORY_DANGEROUS_CONTENT',
    'HARM_CATEGORY_CIVIC_INTEGRITY',
  ),
  threshold: oneOf(
    'SafetySetting.HarmBlockThreshold',
    'HARM_BLOCK_THRESHOLD_UNSPECIFIED',
    'BLOCK_LOW_AND_ABOVE',
    'BLOCK_MEDIUM_AND_ABOVE',
    'BLOCK_ONLY_HIGH',
    'BLOCK_NONE',
    'OFF',
  ),
}))

const thinkingConfig = message('ThinkingConfig', () => ({
  includeThoughts: bool,
  thinkingBudget: int32,
  thinkingLevel: oneOf(
    'ThinkingConfig.ThinkingLevel',
    'THINKING_LEVEL_UNSPECIFIED',
    'MINIMAL',
    'LOW',
    'MEDIUM',
    'HIGH',
  ),
}))

const generationConfig = message('GenerationConfig', () => ({
  candidateCount: int32,
  stopSequences: list(string),
  maxOutputTokens: int32,
  temperature: float,
  topP: float,
  topK: int32,
  seed: int32,
  presencePenalty: float,
  frequencyPenalty: float,
  responseLogprobs: bool,
  logprobs: int32,
  responseMimeType: string,
  responseSchema: schema,
  responseJsonSchema: value,
  responseModalities: list(oneOf('GenerationConfig.Modality', 'MODALITY_UNSPECIFIED', 'TEXT', 'IMAGE', 'AUDIO')),
  enableEnhancedCivicAnswers: bool,
  mediaResolution: string,
  speechConfig: struct,
  imageConfig: struct,
  thinkingConfig,
}))

export const generateContentRequest = message('GenerateContentRequest', () => ({
  model: string,
  contents: list(content),
  systemInstruction: content,
  tools: list(tool),
  toolConfig,
  safetySettings: list(safetySetting),
  generationConfig,
  cachedContent: string,
  serviceTier: string,
  store: bool,
}))

/** Either bare contents, or a complete request whose tools and system instruction are counted as well. */
export const countTokensRequest = message('CountTokensRequest', () => ({
  model: string,
  contents: list(content),
  generateContentRequest,
}))
