# One node of Turnpike. docs/operators.md says how to run it.
FROM node:20-bookworm-slim AS program
WORKDIR /turnpike
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev
COPY src src
COPY scripts/bundle.ts scripts/
RUN npm run prepare

# Bun is among the packages: what runs needs neither Node nor npm.
FROM debian:bookworm-slim
WORKDIR /turnpike
COPY --from=program /turnpike/node_modules node_modules
COPY --from=program /turnpike/dist dist
COPY package.json LICENSE NOTICE ./
COPY bin bin
COPY src src
RUN ln -s /turnpike/bin/turnpike /usr/local/bin/turnpike \
  && useradd --uid 10001 turnpike \
  && install --directory --owner=turnpike --mode=700 /data

# The folder that settings are looked for in is /turnpike: mount turnpike.yaml there.
ENV HOST=0.0.0.0 TURNPIKE_DATA=/data
USER turnpike
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["turnpike"]
CMD ["serve"]
