# Makes the page's table, as a migration does.

require "active_record"
require "yaml"

ActiveRecord::Base.establish_connection(YAML.load_file("database.yml"))
ActiveRecord::Migration.verbose = false
require_relative "create_events"
CreateEvents.migrate(:up) unless ActiveRecord::Base.connection.table_exists?(:events)
