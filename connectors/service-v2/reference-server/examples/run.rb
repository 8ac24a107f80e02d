# frozen_string_literal: true

# Runs cases.json against a reference server, with the standard HTTP client of Ruby.
#
# Usage: ruby run.rb <cases.json> <baseUrl> <controlUrl> [name=value ...]. The values fill {{name}} in the cases.
require "json"
require "net/http"
require "uri"

ABSENT = Object.new.freeze

# A difference between an expected and an actual value.
class Mismatch < StandardError
  attr_reader :at

  def initialize(at, expected, actual)
    got = actual.equal?(ABSENT) ? "nothing" : JSON.generate(actual)
    super("expected #{JSON.generate(expected)}, got #{got}")
    @at = at
  end
end

# Replaces {{name}}. A text that is nothing else becomes the value itself.
def fill(template, values)
  value_of = lambda do |name|
    values.fetch(name) { raise Mismatch.new("values", "a value for #{name}", ABSENT) }
  end
  case template
  when Array then template.map { |one| fill(one, values) }
  when Hash then template.transform_values { |one| fill(one, values) }
  when /\A\{\{(\w+)\}\}\z/ then value_of.call($1)
  when String then template.gsub(/\{\{(\w+)\}\}/) { value_of.call($1).to_s }
  else template
  end
end

TYPES = {
  "string" => [String], "integer" => [Integer], "boolean" => [true, false], "array" => [Array], "object" => [Hash]
}.freeze

def matches?(at, expected, actual)
  match(at, expected, actual)
  true
rescue Mismatch
  false
end

def met?(expected, actual)
  key, value = expected.first
  case key
  when "$type" then TYPES.fetch(value).any? { |type| type === actual }
  when "$match" then actual.is_a?(String) && actual.match?(Regexp.new(value))
  when "$absent" then actual.equal?(ABSENT)
  when "$length" then actual.is_a?(Array) && actual.length == value
  when "$contains"
    actual.is_a?(Array) && value.all? { |one| actual.any? { |candidate| matches?("", one, candidate) } }
  end
end

def match(at, expected, actual)
  differs = -> { raise Mismatch.new(at, expected, actual) }
  if expected.is_a?(Array)
    differs.call unless actual.is_a?(Array) && actual.length == expected.length
    expected.each_with_index { |one, index| match("#{at}.#{index}", one, actual[index]) }
  elsif !expected.is_a?(Hash)
    differs.call unless expected == actual
  elsif expected.keys.first.to_s.start_with?("$")
    differs.call unless met?(expected, actual)
  else
    differs.call unless actual.is_a?(Hash)
    expected.each { |key, one| match("#{at}.#{key}", one, actual.fetch(key, ABSENT)) }
  end
end

def at_path(value, path)
  path.split(".").reduce(value) { |node, key| node.is_a?(Array) ? node[Integer(key)] : node[key] }
end

def send_request(step, base, control, values)
  api = step.key?("api")
  method, path = fill(api ? step["api"] : step["control"], values).split(" ")
  url = URI(api ? base : control)
  headers = fill(step.fetch("headers", {}), values)
  token = api ? fill(step.fetch("token", "{{token}}"), values) : nil
  headers["Authorization"] = "Bearer #{token}" if token
  body = step["rawBody"] || (JSON.generate(fill(step["body"], values)) if step.key?("body"))
  headers["Content-Type"] = "application/json" if body
  http = Net::HTTP.new(url.hostname, url.port)
  # By default, the client repeats some requests.
  http.max_retries = 0
  answer = http.start { |connection| connection.send_request(method, url.path + path, body, headers) }
  text = answer.body.to_s.dup.force_encoding("UTF-8")
  # The client accepts a body that ends early.
  raise EOFError if text.bytesize < answer["content-length"].to_i
  { "status" => answer.code.to_i, "headers" => answer.each_header.to_h, "text" => text, "connection" => "complete" }
rescue IOError, SystemCallError, Timeout::Error, Net::HTTPBadResponse
  { "connection" => "broken" }
end

def run_step(step, base, control, values)
  answer = send_request(step, base, control, values)
  expected = fill(step["expect"], values)
  %w[status connection].each do |key|
    match(key, expected[key], answer.fetch(key, ABSENT)) if expected.key?(key)
  end
  answer["body"] = JSON.parse(answer["text"]) if expected.key?("body") || step.key?("save")
  answer["lines"] = answer["text"].split("\n").map { |line| JSON.parse(line) } if expected.key?("lines")
  expected.each do |key, one|
    match(key, key == "headers" ? one.transform_keys(&:downcase) : one, answer.fetch(key, ABSENT))
  end
  step.fetch("save", {}).each { |name, path| values[name] = at_path(answer["body"], path) }
end

file, base, control, *given = ARGV
document = JSON.parse(File.read(file, encoding: "UTF-8"))
failures = 0
skipped = 0
document["cases"].each do |one|
  values = given.to_h { |pair| pair.split("=", 2) }
  missing = one.fetch("needs", []).reject { |name| values.key?(name) }
  unless missing.empty?
    skipped += 1
    puts "skipped #{one["name"]}: needs #{missing.join(", ")}"
    next
  end
  number = -document["setup"].length
  begin
    (document["setup"] + one["steps"]).each do |step|
      number += 1
      run_step(step, base, control, values)
    end
    puts "ok #{one["name"]}"
  rescue Mismatch, JSON::ParserError => e
    failures += 1
    puts "not ok #{one["name"]}: step #{number}: #{e.is_a?(Mismatch) ? e.at : "text"}"
    puts "# #{e.message}"
  end
end
puts "#{document["cases"].length - failures - skipped} passed, #{failures} failed, #{skipped} skipped"
exit(failures.zero? ? 0 : 1)
